from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import migrations, models
from django.db.models.functions import Now

from jobs.models.fields import validate_zone

ID = (
    "id",
    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
)
NO_NUL = RegexValidator("\x00", "The NUL character is not allowed.", inverse_match=True)
SECONDS = [MinValueValidator(0.1), MaxValueValidator(2592000.0)]
COUNTS = [
    MinValueValidator(1, "This is a whole number from 1 to 2147483647."),
    MaxValueValidator(2147483647, "This is a whole number from 1 to 2147483647."),
]


class Migration(migrations.Migration):
    initial = True

    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.CreateModel(
            name="Owner",
            fields=[
                ID,
                (
                    "slug",
                    models.CharField(
                        help_text="1 to 100 letters, digits, “.”, “_” and “-”, beginning with a letter or a digit.",
                        max_length=100,
                        unique=True,
                        validators=[
                            RegexValidator(
                                "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}\\Z",
                                "1 to 100 letters, digits, “.”, “_” and “-”, beginning with a letter or a digit.",
                            )
                        ],
                        verbose_name="slug",
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        blank=True, max_length=200, validators=[NO_NUL], verbose_name="name"
                    ),
                ),
                (
                    "weight",
                    models.PositiveSmallIntegerField(
                        default=1,
                        help_text="Share of the workers, in proportion to the others' weights: 1 to 1000.",
                        validators=[
                            MinValueValidator(1, "This is a whole number from 1 to 1000."),
                            MaxValueValidator(1000, "This is a whole number from 1 to 1000."),
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
                        validators=COUNTS,
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
                        validators=[NO_NUL],
                        verbose_name="reason of the pause",
                    ),
                ),
                (
                    "zone",
                    models.CharField(
                        default="UTC",
                        max_length=64,
                        validators=[validate_zone],
                        verbose_name="time zone",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(), editable=False, verbose_name="created at"
                    ),
                ),
                (
                    "rate_limit_per_minute",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Spread evenly, a second's worth at once. Empty: no limit.",
                        null=True,
                        validators=COUNTS,
                        verbose_name="most starts a minute",
                    ),
                ),
                ("calendar_version", models.PositiveIntegerField(db_default=0, editable=False)),
                ("gated_version", models.PositiveIntegerField(db_default=0, editable=False)),
                ("gated_to", models.UUIDField(editable=False, null=True)),
                ("gating_version", models.PositiveIntegerField(db_default=0, editable=False)),
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
                    models.CheckConstraint(
                        condition=models.Q(("slug__regex", "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")),
                        name="owner_slug_is_a_name_of_1_to_100",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("rate_limit_per_minute__isnull", True),
                            ("rate_limit_per_minute__gte", 1),
                            _connector="OR",
                        ),
                        name="owner_rate_limit_positive",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                ID,
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
                        on_delete=models.CASCADE,
                        related_name="fairshift_memberships",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="memberships", to="jobs.owner"
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
            name="Target",
            fields=[
                ID,
                (
                    "name",
                    models.CharField(max_length=200, validators=[NO_NUL], verbose_name="name"),
                ),
                ("labels", models.JSONField(blank=True, default=dict, verbose_name="labels")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(), editable=False, verbose_name="created at"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="targets", to="jobs.owner"
                    ),
                ),
            ],
            options={
                "verbose_name": "target",
                "verbose_name_plural": "targets",
                "ordering": ("owner", "name"),
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "name"), name="target_once_per_owner")
                ],
            },
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                ID,
                (
                    "key",
                    models.CharField(
                        help_text="The caller's own id of the job.",
                        max_length=200,
                        validators=[NO_NUL],
                        verbose_name="key",
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        blank=True, max_length=200, validators=[NO_NUL], verbose_name="name"
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
                            ("seconds", "every N seconds"),
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
                        validators=[MinValueValidator(1)],
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
                        validators=[validate_zone],
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
                        validators=[MinValueValidator(0), MaxValueValidator(9)],
                        verbose_name="priority",
                    ),
                ),
                (
                    "max_attempts",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        null=True,
                        validators=[MinValueValidator(1), MaxValueValidator(100)],
                        verbose_name="most attempts",
                    ),
                ),
                (
                    "backoff_seconds",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=SECONDS,
                        verbose_name="back-off in seconds",
                    ),
                ),
                (
                    "backoff_cap_seconds",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=SECONDS,
                        verbose_name="longest back-off in seconds",
                    ),
                ),
                (
                    "retry_on",
                    ArrayField(
                        base_field=models.CharField(max_length=200),
                        blank=True,
                        default=list,
                        size=None,
                        verbose_name="retry on",
                    ),
                ),
                (
                    "give_up_on",
                    ArrayField(
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
                        validators=SECONDS,
                        verbose_name="soft time limit in seconds",
                    ),
                ),
                (
                    "time_limit_seconds",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=SECONDS,
                        verbose_name="time limit in seconds",
                    ),
                ),
                (
                    "deadline_seconds",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=SECONDS,
                        verbose_name="start within seconds",
                    ),
                ),
                (
                    "lock_key",
                    models.CharField(
                        blank=True,
                        help_text="Runs of the owner with the same key do not overlap.",
                        max_length=200,
                        validators=[NO_NUL],
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
                        db_default=Now(), editable=False, verbose_name="effective from"
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
                        db_default=Now(), editable=False, verbose_name="created at"
                    ),
                ),
                ("changed_at", models.DateTimeField(auto_now=True, verbose_name="changed at")),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="jobs", to="jobs.owner"
                    ),
                ),
                (
                    "target",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="jobs",
                        to="jobs.target",
                        verbose_name="target",
                    ),
                ),
                (
                    "interval_seconds",
                    models.PositiveIntegerField(
                        blank=True,
                        null=True,
                        validators=[MinValueValidator(1)],
                        verbose_name="interval in seconds",
                    ),
                ),
                (
                    "misfire",
                    models.CharField(
                        choices=[
                            ("skip", "skip what was missed"),
                            ("once", "run once for all that was missed"),
                            ("all", "run all that was missed"),
                        ],
                        default="once",
                        max_length=8,
                        verbose_name="when missed",
                    ),
                ),
                (
                    "misfire_cap",
                    models.PositiveIntegerField(
                        default=100,
                        validators=[MinValueValidator(1)],
                        verbose_name="catch up with at most",
                    ),
                ),
                (
                    "misfire_deadline_seconds",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=SECONDS,
                        verbose_name="catch up within seconds",
                    ),
                ),
                (
                    "paused_from",
                    models.DateTimeField(editable=False, null=True, verbose_name="paused from"),
                ),
                (
                    "overlap",
                    models.CharField(
                        choices=[
                            ("allow", "runs may overlap"),
                            ("skip", "skip while a run is open"),
                            ("queue", "queue one run"),
                            ("cancel", "cancel the run before"),
                        ],
                        default="allow",
                        max_length=8,
                        verbose_name="overlap",
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
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "key"), name="job_key_once_per_owner"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("priority__isnull", True), ("priority__range", (0, 9)), _connector="OR"
                        ),
                        name="job_priority_0_to_9",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Submission",
            fields=[
                ID,
                ("label", models.CharField(blank=True, max_length=200, verbose_name="label")),
                ("task", models.CharField(max_length=255, verbose_name="task")),
                ("queue", models.CharField(max_length=100, verbose_name="queue")),
                ("run_count", models.PositiveIntegerField(verbose_name="runs")),
                ("created_at", models.DateTimeField(db_default=Now(), verbose_name="submitted at")),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="submissions", to="jobs.owner"
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
            name="IdempotencyKey",
            fields=[
                ID,
                ("key", models.CharField(max_length=200)),
                ("fingerprint", models.BinaryField(max_length=32)),
                ("run_id", models.UUIDField(null=True)),
                ("submission_id", models.BigIntegerField(null=True)),
                ("created_at", models.DateTimeField(db_default=Now())),
                (
                    "owner",
                    models.ForeignKey(on_delete=models.CASCADE, related_name="+", to="jobs.owner"),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "key"), name="idempotency_key_once_per_owner"
                    )
                ]
            },
        ),
        migrations.AddIndex(
            "submission", models.Index(fields=["owner", "-id"], name="submission_of_owner")
        ),
    ]
