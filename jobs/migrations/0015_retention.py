from pathlib import Path
from typing import Any

import django.core.validators
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).parent / "sql"
SECONDS = 600
LAST_PRIORITY = 9  # As the other rounds have it.
DAYS = "This is a whole number from 1 to 3660."

REVERSE = """
DROP FUNCTION jobs_note_touched() CASCADE;
DROP TABLE jobs_touched;
CREATE OR REPLACE FUNCTION jobs_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit entries are append-only';
END $$;
"""


def make_periodic_task(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001  Django hands both in
    """Make the PeriodicTask that removes old history, on the queue of the system worker."""
    intervals = apps.get_model("django_celery_beat", "IntervalSchedule").objects
    # django-celery-beat allows two equal intervals.
    same = {"every": SECONDS, "period": "seconds"}
    interval = intervals.filter(**same).first() or intervals.create(**same)
    apps.get_model("django_celery_beat", "PeriodicTask").objects.get_or_create(
        name="fairshift: remove old history",
        defaults={
            "task": "fairshift.system.remove_old_history",
            "interval": interval,
            "queue": getattr(settings, "FAIRSHIFT", {}).get("SYSTEM_QUEUE", "system"),
            "priority": LAST_PRIORITY,
            "headers": "{}",
            "description": "Fairshift's own work. Disable it and nothing is lost, only late.",
        },
    )


def days(label: str) -> Any:
    return models.PositiveSmallIntegerField(
        blank=True,
        help_text="1 to 3660. Empty: as the installation has it.",
        null=True,
        validators=[
            django.core.validators.MinValueValidator(1, DAYS),
            django.core.validators.MaxValueValidator(3660, DAYS),
        ],
        verbose_name=label,
    )


def in_limits(name: str) -> Any:
    return models.Q((f"{name}__isnull", True), (f"{name}__range", (1, 3660)), _connector="OR")


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0014_metric_totals"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.CreateModel(
            name="HistoryPart",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("number", models.PositiveIntegerField()),
                ("run_count", models.PositiveBigIntegerField()),
                ("attempt_count", models.PositiveBigIntegerField(null=True)),
                ("file", models.CharField(blank=True, max_length=100)),
                ("size_bytes", models.PositiveBigIntegerField(default=0)),
                ("sha256", models.CharField(blank=True, max_length=64)),
                ("removed_at", models.DateTimeField()),
            ],
            options={"ordering": ("day", "number")},
        ),
        migrations.CreateModel(
            name="HistoryRound",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("began_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("problem", models.TextField(blank=True)),
                ("problem_since", models.DateTimeField(null=True)),
                ("looked_at", models.JSONField(default=list)),
                ("looked_by", models.CharField(blank=True, max_length=64)),
            ],
        ),
        migrations.AddConstraint(
            model_name="historypart",
            constraint=models.UniqueConstraint(fields=("day", "number"), name="history_part_once"),
        ),
        migrations.AddField("owner", "run_days", days("days that ended runs stay")),
        migrations.AddField("owner", "failed_run_days", days("days that failed runs stay")),
        migrations.AddConstraint(
            model_name="owner",
            constraint=models.CheckConstraint(
                condition=in_limits("run_days"), name="owner_run_days_1_to_3660"
            ),
        ),
        migrations.AddConstraint(
            model_name="owner",
            constraint=models.CheckConstraint(
                condition=in_limits("failed_run_days"), name="owner_failed_run_days_1_to_3660"
            ),
        ),
        migrations.RunSQL((SQL / "0015_retention.sql").read_text(), REVERSE),
        migrations.RunPython(make_periodic_task, migrations.RunPython.noop),
    ]
