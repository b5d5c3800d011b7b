from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models.functions import Now

SQL = Path(__file__).parent / "sql"
STATES = (
    "scheduled",
    "held",
    "queued",
    "admitted",
    "running",
    "cancelling",
    "retrying",
    "succeeded",
    "failed",
    "cancelled",
    "expired",
)


def model(name: str, options: dict[str, Any], /, **fields: models.Field) -> migrations.CreateModel:
    """Create a table, with an `id` unless a field is the primary key."""
    if not any(field.primary_key for field in fields.values()):
        number = models.BigAutoField("ID", primary_key=True, serialize=False, auto_created=True)
        fields = {"id": number, **fields}
    return migrations.CreateModel(name, list(fields.items()), options)


def alike(*names: str) -> list[tuple[str, str]]:
    """Return choices whose labels are their values."""
    return [(name, name) for name in names]


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("jobs", "0002_calendars"),
    ]

    operations = [
        model(
            "Worker",
            {
                "verbose_name": "worker",
                "verbose_name_plural": "workers",
                "ordering": ("-started_at",),
                "indexes": [
                    models.Index(
                        name="worker_beating",
                        fields=["heartbeat_at"],
                        condition=models.Q(stopped_at__isnull=True),
                    )
                ],
            },
            id=models.UUIDField(primary_key=True, serialize=False),
            hostname=models.CharField("node name", max_length=255),
            pid=models.PositiveIntegerField("process id"),
            pool=models.CharField("pool", max_length=32),
            slots=models.PositiveIntegerField("slots"),
            queues=models.JSONField("queues", default=list),
            version=models.CharField("version", max_length=32),
            started_at=models.DateTimeField("started at", db_default=Now()),
            heartbeat_at=models.DateTimeField("last heartbeat", db_default=Now()),
            stopped_at=models.DateTimeField("stopped at", null=True),
            tasks=models.JSONField("tasks", null=True),
            draining_since=models.DateTimeField("draining since", null=True),
            clock_ahead_seconds=models.FloatField("clock ahead (s)", null=True),
            keys=ArrayField(models.SmallIntegerField(), null=True, editable=False),
            redis_answered_at=models.DateTimeField("last answer of Redis", null=True),
        ),
        model(
            "Rollout",
            {
                "verbose_name": "rollout",
                "verbose_name_plural": "rollouts",
                "indexes": [
                    models.Index(
                        name="rollout_open",
                        fields=["submission"],
                        condition=~models.Q(state="ended") | models.Q(due_from__isnull=False),
                    ),
                    models.Index(
                        name="rollout_untold",
                        fields=["submission"],
                        condition=models.Q(untold__isnull=False),
                    ),
                ],
            },
            submission=models.OneToOneField(
                "jobs.submission", models.CASCADE, primary_key=True, serialize=False
            ),
            owner=models.ForeignKey("jobs.owner", models.PROTECT, related_name="+"),
            state=models.CharField(
                "state",
                max_length=8,
                choices=[
                    ("rolling", "a wave runs"),
                    ("waiting", "waits for the next wave"),
                    ("stopped", "stopped: too many runs of a wave have failed"),
                    ("paused", "paused by an operator"),
                    ("ended", "all waves have ended"),
                ],
                default="rolling",
            ),
            waves=models.JSONField(),
            wave=models.PositiveSmallIntegerField("wave", default=1),
            released_to=models.UUIDField(),
            due_from=models.UUIDField(null=True),
            stop_at=models.CharField("stops at", max_length=10, blank=True),
            between_seconds=models.PositiveIntegerField("seconds between waves", null=True),
            needs_approval=models.BooleanField("needs approval", default=False),
            next_at=models.DateTimeField("next wave at", null=True),
            deadline_seconds=models.FloatField(null=True),
            requested_by=models.ForeignKey(
                settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
            ),
            requested_by_token=models.ForeignKey(
                "jobs.apitoken", models.SET_NULL, null=True, related_name="+"
            ),
            reason=models.CharField("reason", max_length=500, blank=True),
            changed_at=models.DateTimeField("changed at", db_default=Now()),
            untold=models.JSONField(null=True),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                model(
                    "Run",
                    {
                        "verbose_name": "run",
                        "verbose_name_plural": "runs",
                        "ordering": ("-id",),
                        "permissions": [
                            ("cancel_run", "Can cancel a run"),
                            ("retry_run", "Can retry a run"),
                            ("move_run", "Can move a run to another task, or fail it unstarted"),
                            (
                                "view_arguments",
                                "Can see the arguments, the result and the error texts of a run",
                            ),
                        ],
                    },
                    id=models.UUIDField(primary_key=True, serialize=False),
                    task=models.CharField("task", max_length=255),
                    queue=models.CharField("queue", max_length=100),
                    state=models.CharField(
                        "state",
                        max_length=10,
                        choices=alike(*STATES),
                    ),
                    priority=models.PositiveSmallIntegerField("priority", db_default=5),
                    payload=models.BinaryField("arguments"),
                    payload_key=models.SmallIntegerField(db_default=0),
                    result=models.BinaryField("result", null=True),
                    result_key=models.SmallIntegerField(db_default=0),
                    labels=models.JSONField("labels", db_default={}),
                    token=models.PositiveIntegerField("token", db_default=0),
                    attempt_count=models.PositiveSmallIntegerField("attempts", db_default=0),
                    max_attempts=models.PositiveSmallIntegerField("most attempts"),
                    policy=models.JSONField("policy", db_default={}),
                    options=models.JSONField("options", db_default={}),
                    lock_key=models.CharField("lock key", max_length=301, db_default=""),
                    blocked_by=models.CharField("blocked by", max_length=8, db_default=""),
                    created_at=models.DateTimeField("submitted at", db_default=Now()),
                    due_at=models.DateTimeField("due at", null=True),
                    next_at=models.DateTimeField("next at", null=True),
                    deadline_at=models.DateTimeField("start before", null=True),
                    queued_at=models.DateTimeField("queued at", null=True),
                    hint_check_at=models.DateTimeField("hint check at", null=True),
                    admitted_at=models.DateTimeField("admitted at", null=True),
                    started_at=models.DateTimeField("started at", null=True),
                    ended_at=models.DateTimeField("ended at", null=True),
                    error_type=models.CharField("error", max_length=200, db_default=""),
                    error_message=models.TextField("error message", db_default=""),
                    history=models.JSONField("history"),
                    job=models.ForeignKey(
                        "jobs.job",
                        models.DO_NOTHING,
                        verbose_name="job",
                        null=True,
                        related_name="runs",
                        db_index=False,
                        db_constraint=False,
                    ),
                    owner=models.ForeignKey(
                        "jobs.owner",
                        models.DO_NOTHING,
                        verbose_name="owner",
                        related_name="runs",
                        db_index=False,
                        db_constraint=False,
                    ),
                    submission=models.ForeignKey(
                        "jobs.submission",
                        models.DO_NOTHING,
                        verbose_name="submission",
                        null=True,
                        related_name="runs",
                        db_index=False,
                        db_constraint=False,
                    ),
                    target=models.ForeignKey(
                        "jobs.target",
                        models.DO_NOTHING,
                        verbose_name="target",
                        null=True,
                        related_name="runs",
                        db_index=False,
                        db_constraint=False,
                    ),
                    worker=models.ForeignKey(
                        "jobs.worker",
                        models.DO_NOTHING,
                        verbose_name="worker",
                        null=True,
                        related_name="runs",
                        db_index=False,
                        db_constraint=False,
                    ),
                    not_after=models.DateTimeField("not after", null=True),
                    closes_at=models.DateTimeField("closes at", null=True),
                    stop_at=models.DateTimeField("stop at", null=True),
                    window_policy=models.CharField(
                        "windows",
                        max_length=10,
                        db_default="",
                        choices=[
                            ("", "obeys the calendars that apply"),
                            ("required", "starts only where a calendar applies"),
                            ("overridden", "starts outside its windows: overridden"),
                            ("shared", "obeys shared calendars only: its owner's are overridden"),
                        ],
                    ),
                    earlier_attempts=models.IntegerField(db_default=0, editable=False),
                    error_data=models.BinaryField(null=True),
                    error_key=models.SmallIntegerField(db_default=0, editable=False),
                    progress=models.JSONField(null=True),
                    checkpoint=models.BinaryField(null=True),
                    checkpoint_key=models.SmallIntegerField(db_default=0, editable=False),
                ),
                model(
                    "Attempt",
                    {"verbose_name": "attempt", "verbose_name_plural": "attempts"},
                    pk=models.CompositePrimaryKey(
                        "run_id", "token", blank=True, editable=False, serialize=False
                    ),
                    run_id=models.UUIDField(),
                    token=models.PositiveIntegerField("token"),
                    number=models.PositiveSmallIntegerField("attempt"),
                    worker_id=models.UUIDField("worker", null=True),
                    outcome=models.CharField(
                        "outcome",
                        max_length=12,
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
                    ),
                    admitted_at=models.DateTimeField("admitted at"),
                    started_at=models.DateTimeField("started at", null=True),
                    ended_at=models.DateTimeField("ended at"),
                    error_type=models.CharField("error", max_length=200, db_default=""),
                    error_message=models.TextField("error message", db_default=""),
                    traceback=models.TextField("traceback", db_default=""),
                    queued_at=models.DateTimeField(null=True, editable=False),
                    recorded_at=models.DateTimeField(null=True, editable=False),
                    run_state=models.CharField(
                        max_length=10,
                        db_default="",
                        editable=False,
                        choices=alike(*STATES),
                    ),
                    error_data=models.BinaryField(null=True),
                    error_key=models.SmallIntegerField(db_default=0, editable=False),
                ),
            ],
            database_operations=[
                migrations.RunSQL(
                    (SQL / "0003_runs.sql").read_text(), "DROP TABLE jobs_run, jobs_attempt"
                ),
                migrations.RunSQL(
                    (SQL / "0003_partitions.sql").read_text(), migrations.RunSQL.noop
                ),
            ],
        ),
        model(
            "Outbox",
            {},
            run_ids=ArrayField(models.UUIDField()),
            created_at=models.DateTimeField(db_default=Now()),
        ),
        model(
            "Cursor",
            {"verbose_name": "scheduler", "verbose_name_plural": "scheduler"},
            slot=models.BigIntegerField(help_text="All slots before it are in ticks."),
            beat_at=models.DateTimeField(db_default=Now(), help_text="When the last pulse was."),
        ),
        model(
            "Leader",
            {},
            name=models.CharField(primary_key=True, max_length=100, serialize=False),
            holder=models.CharField(max_length=200),
            since=models.DateTimeField(db_default=Now()),
            until=models.DateTimeField(),
            clock_ahead_seconds=models.FloatField(null=True),
        ),
        model(
            "SentEntry",
            {},
            name=models.CharField(primary_key=True, max_length=255, serialize=False),
            due_at=models.DateTimeField(),
            task_id=models.CharField(max_length=64),
            sent_at=models.DateTimeField(null=True, help_text="Empty: the publish is not known."),
        ),
        model(
            "Tick",
            {
                "indexes": [
                    models.Index(
                        name="tick_open", fields=["id"], condition=models.Q(done_at__isnull=True)
                    ),
                    models.Index(fields=["end_slot"], name="tick_by_end"),
                ]
            },
            first_slot=models.BigIntegerField(),
            end_slot=models.BigIntegerField(help_text="The first slot after it."),
            kind=models.CharField(
                max_length=8,
                default="due",
                choices=[("due", "due"), ("catch_up", "catch up"), ("held", "held")],
            ),
            after_job=models.BigIntegerField(default=0, help_text="Jobs up to this id are done."),
            created_at=models.DateTimeField(db_default=Now()),
            sent_at=models.DateTimeField(null=True),
            done_at=models.DateTimeField(null=True),
        ),
        model(
            "Missed",
            {
                "verbose_name": "missed span",
                "verbose_name_plural": "missed spans",
                "indexes": [
                    models.Index(fields=["owner", "-id"], name="missed_of_owner"),
                    models.Index(fields=["created_at"], name="missed_recorded"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("job", "first_at", "reason"), name="missed_span_once"
                    )
                ],
            },
            first_at=models.DateTimeField("first due"),
            last_at=models.DateTimeField("last due"),
            count=models.PositiveIntegerField("due times"),
            reason=models.CharField(
                "reason",
                max_length=8,
                choices=[
                    ("outage", "no scheduler or worker was running"),
                    ("cap", "more than the job catches up with"),
                    ("deadline", "too late to be caught up"),
                    ("overlap", "the run before it had not ended"),
                    ("paused", "paused"),
                    ("window", "outside its windows"),
                ],
            ),
            created_at=models.DateTimeField("recorded", db_default=Now()),
            job=models.ForeignKey("jobs.job", models.CASCADE, related_name="missed"),
            owner=models.ForeignKey("jobs.owner", models.CASCADE, related_name="+"),
        ),
        model(
            "Backfill",
            {"verbose_name": "backfill", "verbose_name_plural": "backfills"},
            start_at=models.DateTimeField("from"),
            end_at=models.DateTimeField("until", help_text="Not included."),
            count=models.PositiveIntegerField("due times"),
            made=models.PositiveIntegerField("submitted", default=0),
            next_at=models.DateTimeField(null=True, help_text="All before it are submitted."),
            created_at=models.DateTimeField(db_default=Now()),
            done_at=models.DateTimeField(null=True),
            job=models.ForeignKey("jobs.job", models.CASCADE, related_name="backfills"),
            submission=models.ForeignKey("jobs.submission", models.PROTECT, related_name="+"),
        ),
        model(
            "EndListener",
            {},
            pk=models.CompositePrimaryKey(
                "name", "owner_id", blank=True, editable=False, serialize=False
            ),
            name=models.CharField(max_length=20),
            owner_id=models.BigIntegerField(),
            taken_at=models.DateTimeField(db_default=Now()),
        ),
        model(
            "End",
            {"indexes": [models.Index(fields=["listener", "id"], name="end_of_listener")]},
            listener=models.CharField(max_length=20),
            run_id=models.UUIDField(),
            owner_id=models.BigIntegerField(),
            submission_id=models.BigIntegerField(null=True),
            state=models.CharField(
                max_length=10, choices=alike("cancelled", "expired", "failed", "succeeded")
            ),
            ended_at=models.DateTimeField(),
            recorded_at=models.DateTimeField(),
        ),
        model(
            "EndMark",
            {
                "indexes": [
                    models.Index(
                        name="end_mark_waits", fields=["listener"], condition=models.Q(waits=True)
                    )
                ]
            },
            pk=models.CompositePrimaryKey(
                "listener", "submission_id", blank=True, editable=False, serialize=False
            ),
            listener=models.CharField(max_length=20),
            submission_id=models.BigIntegerField(),
            checked_at=models.DateTimeField(),
            waits=models.BooleanField(),
        ),
        model(
            "HookCall",
            {"indexes": [models.Index(fields=["hook", "next_at"], name="hook_call_due")]},
            hook=models.CharField(max_length=255),
            run_id=models.UUIDField(null=True),
            submission_id=models.BigIntegerField(null=True),
            facts=models.JSONField(),
            failures=models.PositiveSmallIntegerField(db_default=0),
            next_at=models.DateTimeField(db_default=Now()),
            created_at=models.DateTimeField(db_default=Now()),
        ),
        model(
            "RollupPosition",
            {},
            final_until=models.DateTimeField(),
            counted_until=models.DateTimeField(),
            boundary_at=models.DateTimeField(null=True),
            boundary_xid=models.BigIntegerField(null=True),
        ),
        model(
            "Rollup",
            {"indexes": [models.Index(fields=["owner_id", "minute"], name="rollup_of_owner")]},
            pk=models.CompositePrimaryKey(
                "minute",
                "owner_id",
                "task",
                "outcome",
                "error_type",
                blank=True,
                editable=False,
                serialize=False,
            ),
            minute=models.DateTimeField(),
            owner_id=models.BigIntegerField(),
            task=models.CharField(max_length=255),
            outcome=models.CharField(
                max_length=10,
                choices=alike("succeeded", "failed", "retrying", "cancelled", "expired"),
            ),
            error_type=models.CharField(max_length=200),
            count=models.PositiveIntegerField(),
            wait_seconds=models.FloatField(),
            wait_buckets=ArrayField(models.SmallIntegerField()),
            wait_counts=ArrayField(models.IntegerField()),
            worker_seconds=models.FloatField(),
            run_buckets=ArrayField(models.SmallIntegerField()),
            run_counts=ArrayField(models.IntegerField()),
        ),
        model(
            "RollupTotal",
            {},
            minute=models.DateTimeField(primary_key=True, serialize=False),
            succeeded=models.PositiveIntegerField(),
            failed=models.PositiveIntegerField(),
            retrying=models.PositiveIntegerField(),
            cancelled=models.PositiveIntegerField(),
            expired=models.PositiveIntegerField(),
            worker_seconds=models.FloatField(),
            wait_buckets=ArrayField(models.SmallIntegerField()),
            wait_counts=ArrayField(models.IntegerField()),
            run_buckets=ArrayField(models.SmallIntegerField()),
            run_counts=ArrayField(models.IntegerField()),
        ),
        model(
            "MetricOwner",
            {},
            owner_id=models.BigIntegerField(primary_key=True, serialize=False),
            load=models.FloatField(),
        ),
        model(
            "MetricTotal",
            {
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner_id", "queue", "name"), name="metric_total_once"
                    )
                ]
            },
            owner_id=models.BigIntegerField(),
            queue=models.CharField(max_length=100),
            name=models.CharField(max_length=20),
            value=models.FloatField(),
        ),
        model(
            "HistoryPart",
            {
                "ordering": ("day", "number"),
                "constraints": [
                    models.UniqueConstraint(fields=("day", "number"), name="history_part_once")
                ],
            },
            day=models.DateField(),
            number=models.PositiveIntegerField(),
            run_count=models.PositiveBigIntegerField(),
            attempt_count=models.PositiveBigIntegerField(null=True),
            file=models.CharField(max_length=100, blank=True),
            size_bytes=models.PositiveBigIntegerField(default=0),
            sha256=models.CharField(max_length=64, blank=True),
            removed_at=models.DateTimeField(),
        ),
        model(
            "HistoryRound",
            {},
            began_at=models.DateTimeField(),
            ended_at=models.DateTimeField(null=True),
            problem=models.TextField(blank=True),
            problem_since=models.DateTimeField(null=True),
            looked_at=models.JSONField(default=list),
            looked_by=models.CharField(max_length=64, blank=True),
        ),
    ]
