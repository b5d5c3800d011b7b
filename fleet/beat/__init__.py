"""celery-beat: any number may run, and one of them sends."""
