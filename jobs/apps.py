"""The Django app of jobs: what people ask for."""

from typing import Final

from django.apps import AppConfig, apps
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from jobs.core import conf

NEEDED: Final = ("django_celery_beat", "django_celery_results", "django_object_actions")
"""Apps whose tables, or templates of the admin, this one uses."""


def refuse_missing_apps() -> None:
    """Raise ImproperlyConfigured for apps that are not installed, before something else fails."""
    if missing := [repr(name) for name in NEEDED if not apps.is_installed(name)]:
        raise ImproperlyConfigured(f"Fairshift needs {' and '.join(missing)} in INSTALLED_APPS.")


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = _("Fairshift")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        refuse_missing_apps()

        from jobs import checks  # noqa: F401  registers the system checks
        from jobs.core.unmigrated import explain_missing_tables
        from jobs.pages.ical_logs import hide_feed_secrets

        hide_feed_secrets()
        explain_missing_tables()

        # Here already: what reads a value of a wrong type would fail without naming it.
        conf.refuse_wrong_settings()
