from typing import Any

from django.db import migrations

from jobs.system.schedule import keep_periodic_tasks


def _keep(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001  Django hands both in
    keep_periodic_tasks(
        periodic_tasks=apps.get_model("django_celery_beat", "PeriodicTask"),
        intervals=apps.get_model("django_celery_beat", "IntervalSchedule"),
    )


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0001_initial"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [migrations.RunPython(_keep, migrations.RunPython.noop)]
