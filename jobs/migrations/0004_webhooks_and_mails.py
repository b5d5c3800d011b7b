from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models.functions import Now

from jobs.models.fields import mark_deleted, no_nul, one_line

SQL = Path(__file__).parent / "sql"


def model(name: str, options: dict[str, Any], /, **fields: models.Field) -> migrations.CreateModel:
    """Create a table, with an `id` unless a field is the primary key."""
    if not any(field.primary_key for field in fields.values()):
        number = models.BigAutoField("ID", primary_key=True, serialize=False, auto_created=True)
        fields = {"id": number, **fields}
    return migrations.CreateModel(name, list(fields.items()), options)


def alike(*names: str) -> list[tuple[str, str]]:
    """Return choices whose labels are their values."""
    return [(name, name) for name in names]


def interests() -> dict[str, models.Field]:
    """Return the fields that say which events an endpoint or a subscription gets."""
    return {
        "name": models.CharField("name", max_length=100, validators=[one_line]),
        "events": ArrayField(
            models.CharField(
                max_length=32,
                choices=[
                    ("run.ended", "a run ended"),
                    ("submission.ended", "all runs of a submission ended"),
                    ("wave.ended", "all runs of a wave ended"),
                    ("rollout.stopped", "a rollout stopped: too many failures"),
                    ("rollout.waits", "the next wave of a rollout needs an approval"),
                    ("job.failing", "a job began to fail"),
                    ("job.recovered", "a job no longer fails"),
                    ("job.late", "a job is late"),
                    ("job.on_time", "a job is no longer late"),
                ],
            ),
            verbose_name="events",
        ),
        "tasks": ArrayField(
            models.CharField(max_length=255, validators=[no_nul]),
            verbose_name="tasks",
            blank=True,
            default=list,
            help_text="Names with * for any text, separated by commas. Empty: all tasks.",
        ),
        "states": ArrayField(
            models.CharField(max_length=10),
            verbose_name="states",
            blank=True,
            default=list,
            help_text="Only runs that end in these states. Empty: all ends.",
        ),
        "is_active": models.BooleanField("active", default=True),
        "created_at": models.DateTimeField("made at", db_default=Now(), editable=False),
    }


def makers() -> dict[str, models.Field]:
    """Return the fields that say who made an endpoint or a subscription."""
    return {
        "created_by": models.ForeignKey(
            settings.AUTH_USER_MODEL,
            models.SET_NULL,
            verbose_name="made by",
            null=True,
            editable=False,
            related_name="+",
        ),
        "created_by_token": models.ForeignKey(
            "jobs.apitoken",
            models.SET_NULL,
            verbose_name="made by the token",
            null=True,
            editable=False,
            related_name="+",
        ),
    }


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("jobs", "0003_runs"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        model(
            "WebhookEndpoint",
            {
                "verbose_name": "webhook",
                "verbose_name_plural": "webhooks",
                "ordering": ("-id",),
                "indexes": [models.Index(fields=["owner", "-id"], name="webhook_of_owner")],
                "constraints": [
                    models.CheckConstraint(
                        name="webhook_deleted_is_inactive",
                        condition=models.Q(deleted_at=None) | models.Q(is_active=False),
                    )
                ],
            },
            **interests(),
            url=models.CharField("URL", max_length=2000, validators=[no_nul]),
            has_details=models.BooleanField(
                "with details",
                default=False,
                help_text="Send arguments, results and error texts, too, as far as its maker may see them.",
            ),
            secret=models.BinaryField(),
            secret_key=models.SmallIntegerField(db_default=0, editable=False),
            old_secret=models.BinaryField(null=True),
            old_secret_key=models.SmallIntegerField(db_default=0, editable=False),
            old_secret_until=models.DateTimeField("old key until", null=True, editable=False),
            bound_to=models.CharField(max_length=32, editable=False),
            failure_count=models.PositiveIntegerField(
                "failures in a row", db_default=0, editable=False
            ),
            retry_at=models.DateTimeField("next attempt", null=True, editable=False),
            disabled_at=models.DateTimeField("disabled at", null=True, editable=False),
            disabled_reason=models.CharField(
                "reason", max_length=500, blank=True, db_default="", editable=False
            ),
            last_delivered_at=models.DateTimeField("last delivery", null=True, editable=False),
            **makers(),
            job=models.ForeignKey(
                "jobs.job", mark_deleted, verbose_name="job", null=True, related_name="+"
            ),
            owner=models.ForeignKey(
                "jobs.owner", mark_deleted, verbose_name="owner", null=True, related_name="+"
            ),
            deleted_at=models.DateTimeField("deleted at", null=True, editable=False),
            has_maker=models.BooleanField(default=False, db_default=False, editable=False),
        ),
        model(
            "WebhookDelivery",
            {
                "verbose_name": "webhook delivery",
                "verbose_name_plural": "webhook deliveries",
                "ordering": ("-id",),
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["endpoint", "-id"], name="webhook_delivery_of"),
                    models.Index(fields=["created_at"], name="webhook_delivery_made"),
                    models.Index(
                        name="webhook_delivery_due",
                        fields=["endpoint", "next_at"],
                        condition=models.Q(state="waiting"),
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("endpoint", "event_id"), name="webhook_event_once_per_endpoint"
                    )
                ],
            },
            event_id=models.CharField("event", max_length=100),
            event_type=models.CharField("kind", max_length=32),
            event_at=models.DateTimeField("at"),
            data=models.JSONField("data"),
            state=models.CharField(
                "state", max_length=10, choices=alike("waiting", "delivered", "failed")
            ),
            attempt_count=models.PositiveIntegerField("attempts", db_default=0),
            next_at=models.DateTimeField("next attempt"),
            created_at=models.DateTimeField("made at", db_default=Now()),
            ended_at=models.DateTimeField("ended at", null=True),
            tries=models.JSONField(db_default=[]),
            owner=models.ForeignKey(
                "jobs.owner", models.DO_NOTHING, null=True, related_name="+", db_constraint=False
            ),
            endpoint=models.ForeignKey(
                "jobs.webhookendpoint", models.CASCADE, related_name="deliveries"
            ),
        ),
        model(
            "MailSubscription",
            {
                "verbose_name": "mail subscription",
                "verbose_name_plural": "mail subscriptions",
                "ordering": ("-id",),
            },
            **interests(),
            addresses=ArrayField(
                models.EmailField(),
                verbose_name="addresses",
                help_text="Separated by commas.",
            ),
            language=models.CharField(
                "language", max_length=16, default="en", help_text="A code, such as en or de."
            ),
            **makers(),
            job=models.ForeignKey(
                "jobs.job",
                models.CASCADE,
                verbose_name="job",
                blank=True,
                null=True,
                help_text="Only events of this job. Empty: of all.",
                related_name="+",
            ),
            owner=models.ForeignKey(
                "jobs.owner",
                models.CASCADE,
                verbose_name="owner",
                blank=True,
                null=True,
                help_text="Empty: events of all owners of the installation.",
                related_name="+",
            ),
            disabled_at=models.DateTimeField("disabled at", null=True, editable=False),
            disabled_reason=models.CharField(
                "reason", max_length=500, blank=True, db_default="", editable=False
            ),
            has_maker=models.BooleanField(default=False, db_default=False, editable=False),
        ),
        model(
            "MailDigest",
            {
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        name="mail_digest_due",
                        fields=["next_at"],
                        condition=models.Q(held_count__gt=0) | models.Q(sending__isnull=False),
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("subscription", "subject", "change"), name="mail_digest_once"
                    )
                ],
            },
            subject=models.CharField(max_length=300),
            change=models.CharField(max_length=50),
            held=models.JSONField(db_default=[]),
            held_count=models.PositiveIntegerField(db_default=0),
            sending=models.JSONField(null=True),
            sending_count=models.PositiveIntegerField(db_default=0),
            failure_count=models.PositiveSmallIntegerField(db_default=0),
            next_at=models.DateTimeField(),
            sent_at=models.DateTimeField(null=True),
            subscription=models.ForeignKey(
                "jobs.mailsubscription", models.CASCADE, related_name="+"
            ),
        ),
        model(
            "JobAlarm",
            {
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("job", "kind"), name="job_alarm_once")
                ],
            },
            kind=models.CharField(max_length=16, editable=False, choices=alike("failing", "late")),
            since_at=models.DateTimeField(db_default=Now()),
            job=models.ForeignKey("jobs.job", models.CASCADE, related_name="+"),
        ),
        migrations.RunSQL((SQL / "0004_flat_lists.sql").read_text(), migrations.RunSQL.noop),
    ]
