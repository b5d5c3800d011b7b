"""celery-beat, of which any number may run: one of them sends."""
