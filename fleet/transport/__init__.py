"""The fair transport: one Celery queue that stands for the queues of many owners."""
