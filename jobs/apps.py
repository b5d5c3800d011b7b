"""The Django app of jobs."""

from typing import Final

from django.apps import AppConfig, apps
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from jobs.core import conf

NEEDED: Final = ("django_celery_beat", "django_celery_results", "django_object_actions")
"""Apps whose tables, or templates of the admin, this one uses."""


def refuse_missing_apps() -> None:
    """Raise ImproperlyConfigured for apps that are not installed."""
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
        from jobs.models import verbs
        from jobs.pages.error_reports import hide_secrets_in_error_reports
        from jobs.pages.ical_logs import hide_feed_secrets
        from jobs.recurring.backfill import backfill
        from jobs.runs.cancellation import cancel_runs, cancel_submission
        from jobs.runs.manual_retry import reopen_runs
        from jobs.runs.submission import run_job, submit, submit_many
        from jobs.runs.why_waiting import why_waiting
        from jobs.system import periodic
        from jobs.system.jit import switch_jit_off

        hide_feed_secrets()
        hide_secrets_in_error_reports()
        explain_missing_tables()
        switch_jit_off()
        periodic.keep_after_migrations(self)
        verbs.install(
            verbs.Verbs(
                cancel_runs=cancel_runs,
                reopen_runs=reopen_runs,
                cancel_submission=cancel_submission,
                why_waiting=why_waiting,
                run_job=run_job,
                backfill=backfill,
                submit=submit,
                submit_many=submit_many,
            )
        )

        # At boot: a later use of a bad value would fail without naming the setting.
        conf.refuse_wrong_settings()
