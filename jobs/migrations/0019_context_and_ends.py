from pathlib import Path
from typing import Any

import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).parent / "sql"
SECONDS = 2
LAST_PRIORITY = 9  # As the other rounds have it.
STATES = ["cancelled", "expired", "failed", "succeeded"]
NOW = django.db.models.functions.datetime.Now
REVERSE = """
ALTER TABLE jobs_run DROP COLUMN progress, DROP COLUMN checkpoint, DROP COLUMN checkpoint_key;
"""


def make_periodic_task(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001  Django hands both in
    """Make the PeriodicTask that calls hooks, on the queue of the system worker."""
    intervals = apps.get_model("django_celery_beat", "IntervalSchedule").objects
    # django-celery-beat allows two equal intervals.
    same = {"every": SECONDS, "period": "seconds"}
    interval = intervals.filter(**same).first() or intervals.create(**same)
    apps.get_model("django_celery_beat", "PeriodicTask").objects.get_or_create(
        name="fairshift: call hooks",
        defaults={
            "task": "fairshift.system.call_hooks",
            "interval": interval,
            "queue": getattr(settings, "FAIRSHIFT", {}).get("SYSTEM_QUEUE", "system"),
            "priority": LAST_PRIORITY,
            "headers": "{}",
            "description": "Fairshift's own work. Disable it and nothing is lost, only late.",
        },
    )


def key(*names: str) -> Any:
    return models.CompositePrimaryKey(
        *names, blank=True, editable=False, primary_key=True, serialize=False
    )


def number() -> Any:
    return models.BigAutoField(
        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
    )


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0018_wait_objectives"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.CreateModel(
            name="EndListener",
            fields=[
                ("pk", key("name", "owner_id")),
                ("name", models.CharField(max_length=20)),
                ("owner_id", models.BigIntegerField()),
                ("taken_at", models.DateTimeField(db_default=NOW())),
            ],
        ),
        migrations.CreateModel(
            name="End",
            fields=[
                ("id", number()),
                ("listener", models.CharField(max_length=20)),
                ("run_id", models.UUIDField()),
                ("owner_id", models.BigIntegerField()),
                ("submission_id", models.BigIntegerField(null=True)),
                (
                    "state",
                    models.CharField(choices=[(name, name) for name in STATES], max_length=10),
                ),
                ("ended_at", models.DateTimeField()),
                ("recorded_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["listener", "id"], name="end_of_listener")],
            },
        ),
        migrations.CreateModel(
            name="EndMark",
            fields=[
                ("pk", key("listener", "submission_id")),
                ("listener", models.CharField(max_length=20)),
                ("submission_id", models.BigIntegerField()),
                ("checked_at", models.DateTimeField()),
                ("waits", models.BooleanField()),
            ],
            options={
                "indexes": [
                    models.Index(
                        name="end_mark_waits",
                        fields=("listener",),
                        condition=models.Q(waits=True),
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="HookCall",
            fields=[
                ("id", number()),
                ("hook", models.CharField(max_length=255)),
                ("run_id", models.UUIDField(null=True)),
                ("submission_id", models.BigIntegerField(null=True)),
                ("facts", models.JSONField()),
                ("failures", models.PositiveSmallIntegerField(db_default=0)),
                ("next_at", models.DateTimeField(db_default=NOW())),
                ("created_at", models.DateTimeField(db_default=NOW())),
            ],
            options={
                "indexes": [models.Index(fields=["hook", "next_at"], name="hook_call_due")],
            },
        ),
        migrations.RunSQL(
            (SQL / "0019_context.sql").read_text(),
            REVERSE,
            state_operations=[
                migrations.AddField("run", "progress", models.JSONField(null=True)),
                migrations.AddField("run", "checkpoint", models.BinaryField(null=True)),
                migrations.AddField(
                    "run", "checkpoint_key", models.SmallIntegerField(db_default=0, editable=False)
                ),
            ],
        ),
        migrations.AlterField(
            "attempt",
            "outcome",
            models.CharField(
                choices=[
                    ("succeeded", "succeeded"),
                    ("failed", "failed"),
                    ("retrying", "failed, tried again"),
                    ("worker lost", "worker lost"),
                    ("child lost", "worker process lost"),
                    ("time limit", "time limit"),
                    ("cancelled", "cancelled"),
                    ("given back", "given back unstarted"),
                    ("snoozed", "snoozed by its task"),
                ],
                max_length=12,
                verbose_name="outcome",
            ),
        ),
        migrations.RunPython(make_periodic_task, migrations.RunPython.noop),
    ]
