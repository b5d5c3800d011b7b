"""The worker's side of a run's journey: boot steps around Celery's worker."""
