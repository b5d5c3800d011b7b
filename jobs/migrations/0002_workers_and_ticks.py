from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models.functions import Now

ID = (
    "id",
    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
)


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("jobs", "0001_owners_and_jobs"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Outbox",
            fields=[
                ID,
                ("run_ids", ArrayField(base_field=models.UUIDField(), size=None)),
                ("created_at", models.DateTimeField(db_default=Now())),
            ],
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
                ("started_at", models.DateTimeField(db_default=Now(), verbose_name="started at")),
                (
                    "heartbeat_at",
                    models.DateTimeField(db_default=Now(), verbose_name="last heartbeat"),
                ),
                ("stopped_at", models.DateTimeField(null=True, verbose_name="stopped at")),
                ("tasks", models.JSONField(null=True, verbose_name="tasks")),
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
            name="Cursor",
            fields=[
                ID,
                ("slot", models.BigIntegerField(help_text="All slots before it are in ticks.")),
                (
                    "beat_at",
                    models.DateTimeField(db_default=Now(), help_text="When the last pulse was."),
                ),
            ],
            options={"verbose_name": "scheduler", "verbose_name_plural": "scheduler"},
        ),
        migrations.CreateModel(
            name="Leader",
            fields=[
                ("name", models.CharField(max_length=100, primary_key=True, serialize=False)),
                ("holder", models.CharField(max_length=200)),
                ("since", models.DateTimeField(db_default=Now())),
                ("until", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="SentEntry",
            fields=[
                ("name", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("due_at", models.DateTimeField()),
                ("task_id", models.CharField(max_length=64)),
                (
                    "sent_at",
                    models.DateTimeField(help_text="Empty: the publish is not known.", null=True),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Backfill",
            fields=[
                ID,
                ("start_at", models.DateTimeField(verbose_name="from")),
                ("end_at", models.DateTimeField(help_text="Not included.", verbose_name="until")),
                ("count", models.PositiveIntegerField(verbose_name="due times")),
                ("made", models.PositiveIntegerField(default=0, verbose_name="submitted")),
                (
                    "next_at",
                    models.DateTimeField(help_text="All before it are submitted.", null=True),
                ),
                ("created_at", models.DateTimeField(db_default=Now())),
                ("done_at", models.DateTimeField(null=True)),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="backfills", to="jobs.job"
                    ),
                ),
                (
                    "submission",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="+", to="jobs.submission"
                    ),
                ),
            ],
            options={"verbose_name": "backfill", "verbose_name_plural": "backfills"},
        ),
        migrations.CreateModel(
            name="Tick",
            fields=[
                ID,
                ("first_slot", models.BigIntegerField()),
                ("end_slot", models.BigIntegerField(help_text="The first slot after it.")),
                (
                    "kind",
                    models.CharField(
                        choices=[("due", "due"), ("catch_up", "catch up"), ("held", "held")],
                        default="due",
                        max_length=8,
                    ),
                ),
                (
                    "after_job",
                    models.BigIntegerField(default=0, help_text="Jobs up to this id are done."),
                ),
                ("created_at", models.DateTimeField(db_default=Now())),
                ("sent_at", models.DateTimeField(null=True)),
                ("done_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("done_at__isnull", True)),
                        fields=["id"],
                        name="tick_open",
                    ),
                    models.Index(fields=["end_slot"], name="tick_by_end"),
                ]
            },
        ),
        migrations.CreateModel(
            name="Missed",
            fields=[
                ID,
                ("first_at", models.DateTimeField(verbose_name="first due")),
                ("last_at", models.DateTimeField(verbose_name="last due")),
                ("count", models.PositiveIntegerField(verbose_name="due times")),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("outage", "no scheduler or worker was running"),
                            ("cap", "more than the job catches up with"),
                            ("deadline", "too late to be caught up"),
                            ("overlap", "the run before it had not ended"),
                            ("paused", "paused"),
                            ("window", "outside its windows"),
                        ],
                        max_length=8,
                        verbose_name="reason",
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=Now(), verbose_name="recorded")),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="missed", to="jobs.job"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="+", to="jobs.owner"),
                ),
            ],
            options={
                "verbose_name": "missed span",
                "verbose_name_plural": "missed spans",
                "indexes": [models.Index(fields=["owner", "-id"], name="missed_of_owner")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("job", "first_at", "reason"), name="missed_span_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="InboxMark",
            fields=[
                ("name", models.CharField(max_length=100, primary_key=True, serialize=False)),
                ("digest", models.CharField(blank=True, max_length=64)),
            ],
        ),
        migrations.CreateModel(
            name="JobImport",
            fields=[
                ID,
                ("name", models.CharField(blank=True, max_length=200)),
                ("content", models.BinaryField()),
                ("created_at", models.DateTimeField(db_default=Now())),
                (
                    "owner",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="+", to="jobs.owner"),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("report", models.BinaryField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("user",), name="jobimport_one_per_person")
                ]
            },
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                ID,
                ("at", models.DateTimeField(db_default=Now(), verbose_name="at")),
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
                        on_delete=models.DO_NOTHING,
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
                        on_delete=models.DO_NOTHING,
                        related_name="+",
                        to="jobs.owner",
                        verbose_name="owner",
                    ),
                ),
                (
                    "database_role",
                    models.CharField(
                        db_default="", editable=False, max_length=63, verbose_name="database role"
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
    ]
