from typing import Any

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import jobs.models.fields
from jobs.core.sql import statement
from jobs.system.partitions import make_partitions


def _make_partitions(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001  Django hands both in
    make_partitions()


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Outbox",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "run_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), size=None
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Owner",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.SlugField(max_length=64, unique=True, verbose_name="slug")),
                (
                    "name",
                    models.CharField(
                        blank=True,
                        max_length=200,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\x00", "The NUL character is not allowed.", inverse_match=True
                            )
                        ],
                        verbose_name="name",
                    ),
                ),
                (
                    "weight",
                    models.PositiveSmallIntegerField(
                        default=1,
                        help_text="Share of the workers, in proportion to the others' weights: 1 to 1000.",
                        validators=[
                            django.core.validators.MinValueValidator(
                                1, "This is a whole number from 1 to 1000."
                            ),
                            django.core.validators.MaxValueValidator(
                                1000, "This is a whole number from 1 to 1000."
                            ),
                        ],
                        verbose_name="weight",
                    ),
                ),
                (
                    "max_running",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Empty: no limit.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(
                                1, "This is a whole number from 1 to 2147483647."
                            ),
                            django.core.validators.MaxValueValidator(
                                2147483647, "This is a whole number from 1 to 2147483647."
                            ),
                        ],
                        verbose_name="most running at once",
                    ),
                ),
                (
                    "paused_at",
                    models.DateTimeField(
                        blank=True, editable=False, null=True, verbose_name="paused at"
                    ),
                ),
                (
                    "paused_until",
                    models.DateTimeField(blank=True, null=True, verbose_name="paused until"),
                ),
                (
                    "paused_reason",
                    models.CharField(
                        blank=True,
                        max_length=200,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\x00", "The NUL character is not allowed.", inverse_match=True
                            )
                        ],
                        verbose_name="reason of the pause",
                    ),
                ),
                (
                    "zone",
                    models.CharField(
                        default="UTC",
                        max_length=64,
                        validators=[jobs.models.fields.validate_zone],
                        verbose_name="time zone",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="created at",
                    ),
                ),
            ],
            options={
                "verbose_name": "owner",
                "verbose_name_plural": "owners",
                "ordering": ("slug",),
                "permissions": [("pause_owner", "Can pause and resume an owner")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("weight__range", (1, 1000))),
                        name="owner_weight_1_to_1000",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("max_running__isnull", True), ("max_running__gte", 1), _connector="OR"
                        ),
                        name="owner_max_running_positive",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Submission",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("label", models.CharField(blank=True, max_length=200, verbose_name="label")),
                ("task", models.CharField(max_length=255, verbose_name="task")),
                ("queue", models.CharField(max_length=100, verbose_name="queue")),
                ("run_count", models.PositiveIntegerField(verbose_name="runs")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="submitted at",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="submissions",
                        to="jobs.owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "submission",
                "verbose_name_plural": "submissions",
                "ordering": ("-id",),
                "permissions": [("cancel_submission", "Can cancel a submission")],
            },
        ),
        migrations.CreateModel(
            name="Target",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        max_length=200,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\x00", "The NUL character is not allowed.", inverse_match=True
                            )
                        ],
                        verbose_name="name",
                    ),
                ),
                ("labels", models.JSONField(blank=True, default=dict, verbose_name="labels")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="created at",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="targets",
                        to="jobs.owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "target",
                "verbose_name_plural": "targets",
                "ordering": ("owner", "name"),
            },
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        help_text="The caller's own id of the job.",
                        max_length=200,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\x00", "The NUL character is not allowed.", inverse_match=True
                            )
                        ],
                        verbose_name="key",
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        blank=True,
                        max_length=200,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\x00", "The NUL character is not allowed.", inverse_match=True
                            )
                        ],
                        verbose_name="name",
                    ),
                ),
                ("task", models.CharField(max_length=255, verbose_name="task")),
                ("queue", models.CharField(blank=True, max_length=100, verbose_name="queue")),
                ("payload", models.BinaryField(verbose_name="arguments")),
                (
                    "payload_key",
                    models.SmallIntegerField(default=0, verbose_name="key of the arguments"),
                ),
                ("labels", models.JSONField(blank=True, default=dict, verbose_name="labels")),
                (
                    "schedule",
                    models.CharField(
                        choices=[
                            ("manual", "by hand only"),
                            ("once", "once, at a time"),
                            ("interval", "every N minutes"),
                            ("cron", "cron expression"),
                        ],
                        default="manual",
                        max_length=16,
                        verbose_name="schedule",
                    ),
                ),
                (
                    "interval_minutes",
                    models.PositiveIntegerField(
                        blank=True,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="interval in minutes",
                    ),
                ),
                (
                    "cron",
                    models.CharField(blank=True, max_length=200, verbose_name="cron expression"),
                ),
                ("once_at", models.DateTimeField(blank=True, null=True, verbose_name="once at")),
                (
                    "zone",
                    models.CharField(
                        blank=True,
                        max_length=64,
                        validators=[jobs.models.fields.validate_zone],
                        verbose_name="time zone",
                    ),
                ),
                (
                    "start_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="not before"),
                ),
                ("end_at", models.DateTimeField(blank=True, null=True, verbose_name="not after")),
                ("smooth", models.BooleanField(default=False, verbose_name="smooth")),
                (
                    "shard",
                    models.PositiveSmallIntegerField(
                        editable=False, null=True, verbose_name="shard"
                    ),
                ),
                (
                    "phase",
                    models.PositiveIntegerField(editable=False, null=True, verbose_name="phase"),
                ),
                (
                    "priority",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(9),
                        ],
                        verbose_name="priority",
                    ),
                ),
                (
                    "max_attempts",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100),
                        ],
                        verbose_name="most attempts",
                    ),
                ),
                (
                    "backoff_seconds",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.1),
                            django.core.validators.MaxValueValidator(2592000.0),
                        ],
                        verbose_name="back-off in seconds",
                    ),
                ),
                (
                    "backoff_cap_seconds",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.1),
                            django.core.validators.MaxValueValidator(2592000.0),
                        ],
                        verbose_name="longest back-off in seconds",
                    ),
                ),
                (
                    "retry_on",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=200),
                        blank=True,
                        default=list,
                        size=None,
                        verbose_name="retry on",
                    ),
                ),
                (
                    "give_up_on",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=200),
                        blank=True,
                        default=list,
                        size=None,
                        verbose_name="give up on",
                    ),
                ),
                (
                    "soft_time_limit_seconds",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.1),
                            django.core.validators.MaxValueValidator(2592000.0),
                        ],
                        verbose_name="soft time limit in seconds",
                    ),
                ),
                (
                    "time_limit_seconds",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.1),
                            django.core.validators.MaxValueValidator(2592000.0),
                        ],
                        verbose_name="time limit in seconds",
                    ),
                ),
                (
                    "deadline_seconds",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.1),
                            django.core.validators.MaxValueValidator(2592000.0),
                        ],
                        verbose_name="start within seconds",
                    ),
                ),
                (
                    "lock_key",
                    models.CharField(
                        blank=True,
                        help_text="Runs of the owner with the same key do not overlap.",
                        max_length=200,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\x00", "The NUL character is not allowed.", inverse_match=True
                            )
                        ],
                        verbose_name="lock key",
                    ),
                ),
                (
                    "history_policy",
                    models.CharField(
                        choices=[
                            ("full", "full: a row for each run"),
                            ("none", "none: nothing is written"),
                        ],
                        default="full",
                        max_length=8,
                        verbose_name="history",
                    ),
                ),
                (
                    "effective_from",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="effective from",
                    ),
                ),
                ("enabled", models.BooleanField(default=True, verbose_name="enabled")),
                (
                    "paused_until",
                    models.DateTimeField(blank=True, null=True, verbose_name="paused until"),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="created at",
                    ),
                ),
                ("changed_at", models.DateTimeField(auto_now=True, verbose_name="changed at")),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="jobs",
                        to="jobs.owner",
                    ),
                ),
                (
                    "target",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="jobs",
                        to="jobs.target",
                        verbose_name="target",
                    ),
                ),
            ],
            options={
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
                "ordering": ("owner", "key"),
                "permissions": [
                    ("run_job", "Can run a job now"),
                    ("pause_job", "Can pause and resume a job"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("hostname", models.CharField(max_length=255, verbose_name="node name")),
                ("pid", models.PositiveIntegerField(verbose_name="process id")),
                ("pool", models.CharField(max_length=32, verbose_name="pool")),
                ("slots", models.PositiveIntegerField(verbose_name="slots")),
                ("queues", models.JSONField(default=list, verbose_name="queues")),
                ("version", models.CharField(max_length=32, verbose_name="version")),
                (
                    "started_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="started at",
                    ),
                ),
                (
                    "heartbeat_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="last heartbeat",
                    ),
                ),
                ("stopped_at", models.DateTimeField(null=True, verbose_name="stopped at")),
            ],
            options={
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
                "ordering": ("-started_at",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("stopped_at__isnull", True)),
                        fields=["heartbeat_at"],
                        name="worker_beating",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("viewer", "viewer"),
                            ("operator", "operator"),
                            ("approver", "approver"),
                            ("admin", "admin"),
                        ],
                        default="viewer",
                        max_length=16,
                        verbose_name="role",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="fairshift_memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to="jobs.owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "member",
                "verbose_name_plural": "members",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "user"), name="membership_once_per_owner"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="IdempotencyKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=200)),
                ("fingerprint", models.BinaryField(max_length=32)),
                ("run_id", models.UUIDField(null=True)),
                ("submission_id", models.BigIntegerField(null=True)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="jobs.owner",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "key"), name="idempotency_key_once_per_owner"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="at"
                    ),
                ),
                ("actor_name", models.CharField(max_length=150, verbose_name="actor")),
                ("action", models.CharField(max_length=64, verbose_name="action")),
                ("object_type", models.CharField(max_length=64, verbose_name="kind of object")),
                ("object_id", models.CharField(max_length=64, verbose_name="object")),
                ("reason", models.CharField(blank=True, max_length=500, verbose_name="reason")),
                ("details", models.JSONField(default=dict, verbose_name="details")),
                (
                    "actor",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="actor",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="jobs.owner",
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "audit entry",
                "verbose_name_plural": "audit entries",
                "ordering": ("-id",),
                "indexes": [models.Index(fields=["object_type", "object_id"], name="audit_object")],
            },
        ),
        migrations.AddIndex(
            model_name="submission",
            index=models.Index(fields=["owner", "-id"], name="submission_of_owner"),
        ),
        migrations.AddConstraint(
            model_name="target",
            constraint=models.UniqueConstraint(
                fields=("owner", "name"), name="target_once_per_owner"
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.UniqueConstraint(
                fields=("owner", "key"), name="job_key_once_per_owner"
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("priority__isnull", True), ("priority__range", (0, 9)), _connector="OR"
                ),
                name="job_priority_0_to_9",
            ),
        ),
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
                                db_default="", max_length=265, verbose_name="lock key"
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
                            models.DateTimeField(
                                db_default=django.db.models.functions.datetime.Now(),
                                verbose_name="submitted at",
                            ),
                        ),
                        ("due_at", models.DateTimeField(null=True, verbose_name="due at")),
                        ("next_at", models.DateTimeField(null=True, verbose_name="next at")),
                        (
                            "deadline_at",
                            models.DateTimeField(null=True, verbose_name="start before"),
                        ),
                        ("queued_at", models.DateTimeField(null=True, verbose_name="queued at")),
                        ("overdue_at", models.DateTimeField(null=True, verbose_name="overdue at")),
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
                                on_delete=django.db.models.deletion.DO_NOTHING,
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
                                on_delete=django.db.models.deletion.DO_NOTHING,
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
                                on_delete=django.db.models.deletion.DO_NOTHING,
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
                                on_delete=django.db.models.deletion.DO_NOTHING,
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
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="runs",
                                to="jobs.worker",
                                verbose_name="worker",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "run",
                        "verbose_name_plural": "runs",
                        "ordering": ("-id",),
                        "permissions": [
                            ("cancel_run", "Can cancel a run"),
                            ("retry_run", "Can retry a run"),
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
                    options={
                        "verbose_name": "attempt",
                        "verbose_name_plural": "attempts",
                    },
                ),
            ],
            database_operations=[
                migrations.RunSQL(statement("migrations/0001_runs"), migrations.RunSQL.noop)
            ],
        ),
        migrations.RunSQL(statement("migrations/0001_audit_append_only"), migrations.RunSQL.noop),
        migrations.RunPython(_make_partitions, migrations.RunPython.noop),
    ]
