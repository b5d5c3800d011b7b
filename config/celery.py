"""The Celery app; connects Celery, fleet and jobs."""

import os

from celery import Celery
from celery.signals import worker_init

import fleet

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

fleet.use_fair_transport()

app = Celery("fairshift")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
fleet.route_calls()


@worker_init.connect
def _wire(**_signal: object) -> None:
    """Give a worker its Application, before its boot steps are built."""
    from jobs.wiring import application

    fleet.install(app, application())
