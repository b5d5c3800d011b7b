"""Celery's own integration suite, on a stock queue and on a fair one, and what differs."""
