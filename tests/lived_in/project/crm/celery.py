import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "crm.settings.production")

app = Celery("crm")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

if os.environ.get("WITH_FAIRSHIFT"):
    from jobs import setup_celery

    setup_celery(app)
