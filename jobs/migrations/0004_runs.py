from pathlib import Path

from django.db import migrations, models
from django.db.models.functions import Now

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    initial = True

    dependencies = [("jobs", "0003_calendars")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name="Run",
                    fields=[
                        ("id", models.UUIDField(primary_key=True, serialize=False)),
                        ("task", models.CharField(max_length=255, verbose_name="task")),
                        ("queue", models.CharField(max_length=100, verbose_name="queue")),
                        (
                            "state",
                            models.CharField(
                                choices=[
                                    ("scheduled", "scheduled"),
                                    ("held", "held"),
                                    ("queued", "queued"),
                                    ("admitted", "admitted"),
                                    ("running", "running"),
                                    ("cancelling", "cancelling"),
                                    ("retrying", "retrying"),
                                    ("succeeded", "succeeded"),
                                    ("failed", "failed"),
                                    ("cancelled", "cancelled"),
                                    ("expired", "expired"),
                                ],
                                max_length=10,
                                verbose_name="state",
                            ),
                        ),
                        (
                            "priority",
                            models.PositiveSmallIntegerField(db_default=5, verbose_name="priority"),
                        ),
                        ("payload", models.BinaryField(verbose_name="arguments")),
                        ("payload_key", models.SmallIntegerField(db_default=0)),
                        ("result", models.BinaryField(null=True, verbose_name="result")),
                        ("result_key", models.SmallIntegerField(db_default=0)),
                        ("labels", models.JSONField(db_default={}, verbose_name="labels")),
                        ("token", models.PositiveIntegerField(db_default=0, verbose_name="token")),
                        (
                            "attempt_count",
                            models.PositiveSmallIntegerField(db_default=0, verbose_name="attempts"),
                        ),
                        (
                            "max_attempts",
                            models.PositiveSmallIntegerField(verbose_name="most attempts"),
                        ),
                        ("policy", models.JSONField(db_default={}, verbose_name="policy")),
                        ("options", models.JSONField(db_default={}, verbose_name="options")),
                        (
                            "lock_key",
                            models.CharField(
                                db_default="", max_length=301, verbose_name="lock key"
                            ),
                        ),
                        (
                            "blocked_by",
                            models.CharField(
                                db_default="", max_length=8, verbose_name="blocked by"
                            ),
                        ),
                        (
                            "created_at",
                            models.DateTimeField(db_default=Now(), verbose_name="submitted at"),
                        ),
                        ("due_at", models.DateTimeField(null=True, verbose_name="due at")),
                        ("next_at", models.DateTimeField(null=True, verbose_name="next at")),
                        (
                            "deadline_at",
                            models.DateTimeField(null=True, verbose_name="start before"),
                        ),
                        ("queued_at", models.DateTimeField(null=True, verbose_name="queued at")),
                        (
                            "hint_check_at",
                            models.DateTimeField(null=True, verbose_name="hint check at"),
                        ),
                        (
                            "admitted_at",
                            models.DateTimeField(null=True, verbose_name="admitted at"),
                        ),
                        ("started_at", models.DateTimeField(null=True, verbose_name="started at")),
                        ("ended_at", models.DateTimeField(null=True, verbose_name="ended at")),
                        (
                            "error_type",
                            models.CharField(db_default="", max_length=200, verbose_name="error"),
                        ),
                        (
                            "error_message",
                            models.TextField(db_default="", verbose_name="error message"),
                        ),
                        ("history", models.JSONField(verbose_name="history")),
                        (
                            "job",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=models.DO_NOTHING,
                                related_name="runs",
                                to="jobs.job",
                                verbose_name="job",
                            ),
                        ),
                        (
                            "owner",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=models.DO_NOTHING,
                                related_name="runs",
                                to="jobs.owner",
                                verbose_name="owner",
                            ),
                        ),
                        (
                            "submission",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=models.DO_NOTHING,
                                related_name="runs",
                                to="jobs.submission",
                                verbose_name="submission",
                            ),
                        ),
                        (
                            "target",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=models.DO_NOTHING,
                                related_name="runs",
                                to="jobs.target",
                                verbose_name="target",
                            ),
                        ),
                        (
                            "worker",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=models.DO_NOTHING,
                                related_name="runs",
                                to="jobs.worker",
                                verbose_name="worker",
                            ),
                        ),
                        ("not_after", models.DateTimeField(null=True, verbose_name="not after")),
                        ("closes_at", models.DateTimeField(null=True, verbose_name="closes at")),
                        ("stop_at", models.DateTimeField(null=True, verbose_name="stop at")),
                        (
                            "window_policy",
                            models.CharField(
                                choices=[
                                    ("", "obeys the calendars that apply"),
                                    ("required", "starts only where a calendar applies"),
                                    ("overridden", "starts outside its windows: overridden"),
                                ],
                                db_default="",
                                max_length=10,
                                verbose_name="windows",
                            ),
                        ),
                        ("earlier_attempts", models.IntegerField(db_default=0, editable=False)),
                    ],
                    options={
                        "verbose_name": "run",
                        "verbose_name_plural": "runs",
                        "ordering": ("-id",),
                        "permissions": [
                            ("cancel_run", "Can cancel a run"),
                            ("retry_run", "Can retry a run"),
                            ("move_run", "Can move a run to another task, or fail it unstarted"),
                            ("view_arguments", "Can see the arguments and the result of a run"),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Attempt",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "run_id",
                                "token",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("run_id", models.UUIDField()),
                        ("token", models.PositiveIntegerField(verbose_name="token")),
                        ("number", models.PositiveSmallIntegerField(verbose_name="attempt")),
                        ("worker_id", models.UUIDField(null=True, verbose_name="worker")),
                        (
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
                                ],
                                max_length=12,
                                verbose_name="outcome",
                            ),
                        ),
                        ("admitted_at", models.DateTimeField(verbose_name="admitted at")),
                        ("started_at", models.DateTimeField(null=True, verbose_name="started at")),
                        ("ended_at", models.DateTimeField(verbose_name="ended at")),
                        (
                            "error_type",
                            models.CharField(db_default="", max_length=200, verbose_name="error"),
                        ),
                        (
                            "error_message",
                            models.TextField(db_default="", verbose_name="error message"),
                        ),
                        ("traceback", models.TextField(db_default="", verbose_name="traceback")),
                    ],
                    options={"verbose_name": "attempt", "verbose_name_plural": "attempts"},
                ),
            ],
            database_operations=[
                migrations.RunSQL(
                    (SQL / "0004_runs.sql").read_text(), "DROP TABLE jobs_run, jobs_attempt"
                ),
                migrations.RunSQL(
                    (SQL / "0004_partitions.sql").read_text(), migrations.RunSQL.noop
                ),
            ],
        )
    ]
