"""A celery-beat of which any number may run: one of them leads and sends."""
