"""Settings of the servers, before and after Fairshift came."""

import os

from crm.settings.base import *  # noqa: F403  as split settings do
from crm.settings.base import INSTALLED_APPS, TEMPLATES

WITH_FAIRSHIFT = bool(os.environ.get("WITH_FAIRSHIFT"))
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["CRM_DATABASE"],
        "USER": "app",
        "HOST": "127.0.0.1",
        "PORT": os.environ["CRM_PORT"],
    }
}
if WITH_FAIRSHIFT:
    INSTALLED_APPS = ["jobs", "django_object_actions", *INSTALLED_APPS]
    # The wheel has Fairshift's in its app; its sources have them elsewhere.
    TEMPLATES[0]["DIRS"] = [os.environ["FAIRSHIFT_TEMPLATES"]]
else:
    # `check --deploy` has named these lines.
    CELERY_RESULT_BACKEND = "django-db"
    CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
