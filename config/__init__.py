"""This project: connects Django, Celery, jobs and fleet."""

from config.celery import app as celery_app

__all__ = ("celery_app",)
