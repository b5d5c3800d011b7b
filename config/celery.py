"""The Celery app; connects Celery, fleet and jobs."""

from jobs import celery_app

app = celery_app("fairshift", settings="config.settings")
