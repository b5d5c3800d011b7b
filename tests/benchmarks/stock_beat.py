"""Stock celery-beat with django-celery-beat's scheduler, on the queue of `stock.py`."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from tests.benchmarks.stock import app  # noqa: E402 - Django first

app.conf.update(beat_scheduler="django_celery_beat.schedulers:DatabaseScheduler", timezone="UTC")
app.set_default()
