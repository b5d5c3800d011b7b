"""The one place where Celery, fleet and jobs are wired together."""

import os

from celery import Celery

import fleet

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("fairshift")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@app.on_after_finalize.connect
def _wire(sender: Celery, **_kwargs: object) -> None:
    """Hand the application's half of the journey to fleet, once the apps are loaded."""
    from jobs.wiring import edges

    fleet.install(sender, edges())
