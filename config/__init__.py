"""The one place where Django, Celery, jobs and fleet are put together."""

from config.celery import app as celery_app

__all__ = ("celery_app",)
