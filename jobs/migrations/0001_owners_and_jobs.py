from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MinValueValidator
from django.db import migrations, models
from django.db.models.functions import Now

from jobs.models.fields import (
    ATTEMPT_LIMITS,
    COUNT_LIMITS,
    DAYS_LIMITS,
    OBJECTIVE_PERCENT_LIMITS,
    OBJECTIVE_SECONDS_LIMITS,
    PRIORITY_LIMITS,
    SECONDS_LIMITS,
    WEIGHT_LIMITS,
    no_nul,
    one_line,
    owner_name,
    validate_scopes,
    validate_zone,
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
        # For what is made after each `migrate`, also of this app alone: permissions with long labels,
        # and PeriodicTasks.
        ("auth", "0002_alter_permission_name_max_length"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [
        model(
            "Owner",
            {
                "verbose_name": "owner",
                "verbose_name_plural": "owners",
                "ordering": ("slug",),
                "permissions": [("pause_owner", "Can pause and resume an owner")],
                "constraints": [
                    models.CheckConstraint(
                        name="owner_weight_1_to_1000", condition=models.Q(weight__range=(1, 1000))
                    ),
                    models.CheckConstraint(
                        name="owner_max_running_positive",
                        condition=models.Q(max_running__isnull=True) | models.Q(max_running__gte=1),
                    ),
                    models.CheckConstraint(
                        name="owner_slug_is_a_name_of_1_to_100",
                        condition=models.Q(slug__regex="^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"),
                    ),
                    models.CheckConstraint(
                        name="owner_rate_limit_positive",
                        condition=models.Q(rate_limit_per_minute__isnull=True)
                        | models.Q(rate_limit_per_minute__gte=1),
                    ),
                    models.CheckConstraint(
                        name="owner_run_days_1_to_3660",
                        condition=models.Q(run_days__isnull=True)
                        | models.Q(run_days__range=(1, 3660)),
                    ),
                    models.CheckConstraint(
                        name="owner_failed_run_days_1_to_3660",
                        condition=models.Q(failed_run_days__isnull=True)
                        | models.Q(failed_run_days__range=(1, 3660)),
                    ),
                    models.CheckConstraint(
                        name="owner_wait_objective_1_to_86400",
                        condition=models.Q(wait_objective_seconds__isnull=True)
                        | models.Q(wait_objective_seconds__range=(1, 86400)),
                    ),
                    models.CheckConstraint(
                        name="owner_wait_objective_percent_50_to_99_9",
                        condition=models.Q(wait_objective_percent__range=(50.0, 99.9)),
                    ),
                ],
            },
            slug=models.CharField(
                "slug",
                max_length=100,
                unique=True,
                help_text="1 to 100 letters, digits, “.”, “_” and “-”, beginning with a letter or a digit.",
                validators=[owner_name],
            ),
            name=models.CharField("name", max_length=200, blank=True, validators=[one_line]),
            weight=models.PositiveSmallIntegerField(
                "weight",
                default=1,
                help_text="Share of the workers, in proportion to the others' weights: 1 to 1000.",
                validators=WEIGHT_LIMITS,
            ),
            max_running=models.PositiveIntegerField(
                "most running at once",
                blank=True,
                null=True,
                help_text="Empty: no limit.",
                validators=COUNT_LIMITS,
            ),
            paused_at=models.DateTimeField("paused at", blank=True, null=True, editable=False),
            paused_until=models.DateTimeField("paused until", blank=True, null=True),
            paused_reason=models.CharField(
                "reason of the pause", max_length=500, blank=True, validators=[no_nul]
            ),
            zone=models.CharField(
                "time zone", max_length=64, default="UTC", validators=[validate_zone]
            ),
            created_at=models.DateTimeField("created at", db_default=Now(), editable=False),
            rate_limit_per_minute=models.PositiveIntegerField(
                "most starts a minute",
                blank=True,
                null=True,
                help_text="Spread evenly, a second's worth at once. Empty: no limit.",
                validators=COUNT_LIMITS,
            ),
            calendar_version=models.PositiveIntegerField(db_default=0, editable=False),
            gated_version=models.PositiveIntegerField(db_default=0, editable=False),
            gated_to=models.UUIDField(null=True, editable=False),
            gating_version=models.PositiveIntegerField(db_default=0, editable=False),
            run_days=models.PositiveSmallIntegerField(
                "days that ended runs stay",
                blank=True,
                null=True,
                help_text="1 to 3660. Empty: as the installation has it.",
                validators=DAYS_LIMITS,
            ),
            failed_run_days=models.PositiveSmallIntegerField(
                "days that failed runs stay",
                blank=True,
                null=True,
                help_text="1 to 3660. Empty: as the installation has it.",
                validators=DAYS_LIMITS,
            ),
            wait_objective_percent=models.FloatField(
                "objective: percent of the starts",
                default=95,
                db_default=95,
                help_text="The part that starts within that wait: 50 to 99.9.",
                validators=OBJECTIVE_PERCENT_LIMITS,
            ),
            wait_objective_seconds=models.PositiveIntegerField(
                "objective: longest wait in seconds",
                blank=True,
                null=True,
                help_text="From when a run may start to its start: 1 to 86400. Empty: no objective.",
                validators=OBJECTIVE_SECONDS_LIMITS,
            ),
        ),
        model(
            "ApiToken",
            {
                "verbose_name": "API token",
                "verbose_name_plural": "API tokens",
                "ordering": ("-id",),
                "indexes": [models.Index(fields=["owner", "-id"], name="token_of_owner")],
            },
            name=models.CharField(
                "name",
                max_length=100,
                help_text="The program that uses it, for the audit.",
                validators=[one_line],
            ),
            prefix=models.CharField("prefix", max_length=16, unique=True, editable=False),
            digest=models.BinaryField(max_length=32, unique=True),
            scopes=models.JSONField("scopes", validators=[validate_scopes]),
            created_at=models.DateTimeField("made at", db_default=Now(), editable=False),
            expires_at=models.DateTimeField(
                "expires at", blank=True, null=True, help_text="Empty: it does not expire."
            ),
            revoked_at=models.DateTimeField("revoked at", null=True, editable=False),
            last_used_at=models.DateTimeField("last used at", null=True, editable=False),
            created_by=models.ForeignKey(
                settings.AUTH_USER_MODEL,
                models.SET_NULL,
                verbose_name="made by",
                null=True,
                editable=False,
                related_name="+",
            ),
            owner=models.ForeignKey(
                "jobs.owner",
                models.CASCADE,
                verbose_name="owner",
                blank=True,
                null=True,
                help_text="Empty: a token for all owners of the installation.",
                related_name="tokens",
            ),
            created_by_token=models.ForeignKey(
                "jobs.apitoken",
                models.SET_NULL,
                verbose_name="made by the token",
                null=True,
                editable=False,
                related_name="+",
            ),
            has_maker=models.BooleanField(default=False, db_default=False, editable=False),
        ),
        model(
            "Membership",
            {
                "verbose_name": "member",
                "verbose_name_plural": "members",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "user"), name="membership_once_per_owner"
                    )
                ],
            },
            role=models.CharField(
                "role",
                max_length=16,
                default="viewer",
                choices=alike("viewer", "operator", "approver", "admin"),
            ),
            user=models.ForeignKey(
                settings.AUTH_USER_MODEL, models.CASCADE, related_name="fairshift_memberships"
            ),
            owner=models.ForeignKey("jobs.owner", models.CASCADE, related_name="memberships"),
        ),
        model(
            "SavedView",
            {
                "ordering": ("name",),
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("user", "name"), name="saved_view_of_user")
                ],
            },
            name=models.CharField("name", max_length=60, validators=[one_line]),
            query=models.CharField(max_length=4000),
            user=models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+"),
        ),
        model(
            "AuditEntry",
            {
                "verbose_name": "audit entry",
                "verbose_name_plural": "audit entries",
                "ordering": ("-id",),
                "indexes": [
                    models.Index(fields=["object_type", "object_id"], name="audit_object"),
                    models.Index(fields=["owner", "-id"], name="audit_of_owner"),
                    models.Index(fields=["actor_name", "-id"], name="audit_by_actor"),
                    models.Index(fields=["action", "-id"], name="audit_by_action"),
                    models.Index(fields=["at"], name="audit_by_time"),
                ],
            },
            at=models.DateTimeField("at", db_default=Now()),
            actor_name=models.CharField("actor", max_length=150),
            action=models.CharField("action", max_length=64),
            object_type=models.CharField("kind of object", max_length=64),
            object_id=models.CharField("object", max_length=64),
            reason=models.CharField("reason", max_length=500, blank=True),
            details=models.JSONField("details", default=dict),
            actor=models.ForeignKey(
                settings.AUTH_USER_MODEL,
                models.DO_NOTHING,
                verbose_name="actor",
                null=True,
                related_name="+",
                db_constraint=False,
            ),
            owner=models.ForeignKey(
                "jobs.owner",
                models.DO_NOTHING,
                verbose_name="owner",
                null=True,
                related_name="+",
                db_constraint=False,
            ),
            database_role=models.CharField(
                "database role", max_length=63, db_default="", editable=False
            ),
            token=models.ForeignKey(
                "jobs.apitoken",
                models.DO_NOTHING,
                verbose_name="API token",
                null=True,
                editable=False,
                related_name="+",
                db_constraint=False,
            ),
        ),
        model(
            "Target",
            {
                "verbose_name": "target",
                "verbose_name_plural": "targets",
                "ordering": ("owner", "name"),
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "name"), name="target_once_per_owner")
                ],
            },
            name=models.CharField("name", max_length=200, validators=[one_line]),
            labels=models.JSONField("labels", blank=True, default=dict),
            created_at=models.DateTimeField("created at", db_default=Now(), editable=False),
            owner=models.ForeignKey("jobs.owner", models.PROTECT, related_name="targets"),
        ),
        model(
            "TargetGroup",
            {
                "verbose_name": "target group",
                "verbose_name_plural": "target groups",
                "ordering": ("owner", "name"),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "name"), name="target_group_once_per_owner"
                    )
                ],
            },
            name=models.CharField("name", max_length=200, validators=[one_line]),
            owner=models.ForeignKey("jobs.owner", models.PROTECT, related_name="target_groups"),
            targets=models.ManyToManyField(
                "jobs.target", verbose_name="targets", blank=True, related_name="groups"
            ),
        ),
        model(
            "Job",
            {
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
                        name="job_priority_0_to_9",
                        condition=models.Q(priority__isnull=True)
                        | models.Q(priority__range=(0, 9)),
                    ),
                ],
            },
            key=models.CharField(
                "key",
                max_length=200,
                help_text="The caller's own id of the job.",
                validators=[one_line],
            ),
            name=models.CharField("name", max_length=200, blank=True, validators=[one_line]),
            task=models.CharField("task", max_length=255),
            queue=models.CharField("queue", max_length=100, blank=True),
            payload=models.BinaryField("arguments"),
            payload_key=models.SmallIntegerField("key of the arguments", default=0),
            labels=models.JSONField("labels", blank=True, default=dict),
            schedule=models.CharField(
                "schedule",
                max_length=16,
                default="manual",
                choices=[
                    ("manual", "by hand only"),
                    ("once", "once, at a time"),
                    ("interval", "every N minutes"),
                    ("seconds", "every N seconds"),
                    ("cron", "cron expression"),
                ],
            ),
            interval_minutes=models.PositiveIntegerField(
                "interval in minutes", blank=True, null=True, validators=[MinValueValidator(1)]
            ),
            cron=models.CharField("cron expression", max_length=200, blank=True),
            once_at=models.DateTimeField("once at", blank=True, null=True),
            zone=models.CharField(
                "time zone", max_length=64, blank=True, validators=[validate_zone]
            ),
            start_at=models.DateTimeField("not before", blank=True, null=True),
            end_at=models.DateTimeField("not after", blank=True, null=True),
            smooth=models.BooleanField("smooth", default=False),
            shard=models.PositiveSmallIntegerField("shard", null=True, editable=False),
            phase=models.PositiveIntegerField("phase", null=True, editable=False),
            priority=models.PositiveSmallIntegerField(
                "priority", blank=True, null=True, validators=PRIORITY_LIMITS
            ),
            max_attempts=models.PositiveSmallIntegerField(
                "most attempts", blank=True, null=True, validators=ATTEMPT_LIMITS
            ),
            backoff_seconds=models.FloatField(
                "back-off in seconds", blank=True, null=True, validators=SECONDS_LIMITS
            ),
            backoff_cap_seconds=models.FloatField(
                "longest back-off in seconds", blank=True, null=True, validators=SECONDS_LIMITS
            ),
            retry_on=ArrayField(
                models.CharField(max_length=200),
                verbose_name="retry on",
                blank=True,
                default=list,
            ),
            give_up_on=ArrayField(
                models.CharField(max_length=200),
                verbose_name="give up on",
                blank=True,
                default=list,
            ),
            soft_time_limit_seconds=models.FloatField(
                "soft time limit in seconds", blank=True, null=True, validators=SECONDS_LIMITS
            ),
            time_limit_seconds=models.FloatField(
                "time limit in seconds", blank=True, null=True, validators=SECONDS_LIMITS
            ),
            deadline_seconds=models.FloatField(
                "start within seconds", blank=True, null=True, validators=SECONDS_LIMITS
            ),
            lock_key=models.CharField(
                "lock key",
                max_length=200,
                blank=True,
                help_text="Runs of the owner with the same key do not overlap.",
                validators=[no_nul],
            ),
            history_policy=models.CharField(
                "history",
                max_length=8,
                default="full",
                choices=[
                    ("full", "full: a row for each run"),
                    ("none", "none: nothing is written"),
                ],
            ),
            effective_from=models.DateTimeField("effective from", db_default=Now(), editable=False),
            enabled=models.BooleanField("enabled", default=True),
            paused_until=models.DateTimeField("paused until", blank=True, null=True),
            created_at=models.DateTimeField("created at", db_default=Now(), editable=False),
            changed_at=models.DateTimeField("changed at", auto_now=True),
            owner=models.ForeignKey(
                "jobs.owner", models.PROTECT, related_name="jobs", db_index=False
            ),
            target=models.ForeignKey(
                "jobs.target",
                models.PROTECT,
                verbose_name="target",
                blank=True,
                null=True,
                related_name="jobs",
            ),
            interval_seconds=models.PositiveIntegerField(
                "interval in seconds", blank=True, null=True, validators=[MinValueValidator(1)]
            ),
            misfire=models.CharField(
                "when missed",
                max_length=8,
                default="once",
                choices=[
                    ("skip", "skip what was missed"),
                    ("once", "run once for all that was missed"),
                    ("all", "run all that was missed"),
                ],
            ),
            misfire_cap=models.PositiveIntegerField(
                "catch up with at most", default=100, validators=[MinValueValidator(1)]
            ),
            misfire_deadline_seconds=models.FloatField(
                "catch up within seconds", blank=True, null=True, validators=SECONDS_LIMITS
            ),
            paused_from=models.DateTimeField("paused from", null=True, editable=False),
            overlap=models.CharField(
                "overlap",
                max_length=8,
                default="allow",
                choices=[
                    ("allow", "runs may overlap"),
                    ("skip", "skip while a run is open"),
                    ("queue", "queue one run"),
                    ("cancel", "cancel the run before"),
                ],
            ),
        ),
        model(
            "Submission",
            {
                "verbose_name": "submission",
                "verbose_name_plural": "submissions",
                "ordering": ("-id",),
                "permissions": [
                    ("cancel_submission", "Can cancel a submission"),
                    ("approve_submission", "Can approve a wave of a submission"),
                ],
                "indexes": [models.Index(fields=["owner", "-id"], name="submission_of_owner")],
            },
            label=models.CharField("label", max_length=200, blank=True),
            task=models.CharField("task", max_length=255),
            queue=models.CharField("queue", max_length=100),
            run_count=models.PositiveIntegerField("runs"),
            created_at=models.DateTimeField("submitted at", db_default=Now()),
            owner=models.ForeignKey("jobs.owner", models.PROTECT, related_name="submissions"),
        ),
        model(
            "IdempotencyKey",
            {
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "key"), name="idempotency_key_once_per_owner"
                    )
                ]
            },
            key=models.CharField(max_length=200),
            fingerprint=models.BinaryField(max_length=32),
            run_id=models.UUIDField(null=True),
            submission_id=models.BigIntegerField(null=True),
            created_at=models.DateTimeField(db_default=Now()),
            owner=models.ForeignKey("jobs.owner", models.CASCADE, related_name="+"),
        ),
        model(
            "JobImport",
            {
                "constraints": [
                    models.UniqueConstraint(fields=("user",), name="jobimport_one_per_person")
                ]
            },
            name=models.CharField(max_length=200, blank=True),
            content=models.BinaryField(),
            created_at=models.DateTimeField(db_default=Now()),
            owner=models.ForeignKey("jobs.owner", models.CASCADE, related_name="+"),
            user=models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+"),
            report=models.BinaryField(null=True),
        ),
        model(
            "InboxMark",
            {},
            name=models.CharField(primary_key=True, max_length=100, serialize=False),
            digest=models.CharField(max_length=64, blank=True),
        ),
    ]
