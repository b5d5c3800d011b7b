"""The Django app of jobs: what people ask for."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from jobs import conf


class JobsConfig(AppConfig):
    name = "jobs"
    verbose_name = _("Fairshift")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from jobs import checks  # noqa: F401  registers the system checks
        from jobs.ical_logs import hide_feed_secrets
        from jobs.unmigrated import explain_missing_tables

        hide_feed_secrets()
        explain_missing_tables()

        # Here already: what reads a value of a wrong type would fail without naming it.
        conf.refuse_wrong_settings()
