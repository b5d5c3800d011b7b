from pathlib import Path
from typing import Any

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).parent / "sql"
SECONDS = 1
LAST_PRIORITY = 9  # As the other rounds have it.


def make_periodic_task(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001  Django hands both in
    """Make the PeriodicTask that sends webhooks and mails, on the queue of the system worker."""
    intervals = apps.get_model("django_celery_beat", "IntervalSchedule").objects
    # django-celery-beat allows two equal intervals.
    same = {"every": SECONDS, "period": "seconds"}
    interval = intervals.filter(**same).first() or intervals.create(**same)
    apps.get_model("django_celery_beat", "PeriodicTask").objects.get_or_create(
        name="fairshift: send webhooks and mails",
        defaults={
            "task": "fairshift.system.notify",
            "interval": interval,
            "queue": getattr(settings, "FAIRSHIFT", {}).get("SYSTEM_QUEUE", "system"),
            "priority": LAST_PRIORITY,
            "headers": "{}",
            "description": "Fairshift's own work. Disable it and nothing is lost, only late.",
        },
    )


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0019_context_and_ends"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.CreateModel(
            name="MailSubscription",
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
                        max_length=100,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\x00", "The NUL character is not allowed.", inverse_match=True
                            )
                        ],
                        verbose_name="name",
                    ),
                ),
                (
                    "events",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("run.ended", "a run ended"),
                                ("submission.ended", "all runs of a submission ended"),
                                ("job.failing", "a job began to fail"),
                                ("job.recovered", "a job no longer fails"),
                                ("job.late", "a job is late"),
                                ("job.on_time", "a job is no longer late"),
                            ],
                            max_length=32,
                        ),
                        size=None,
                        verbose_name="events",
                    ),
                ),
                (
                    "tasks",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            max_length=255,
                            validators=[
                                django.core.validators.RegexValidator(
                                    "\x00", "The NUL character is not allowed.", inverse_match=True
                                )
                            ],
                        ),
                        blank=True,
                        default=list,
                        help_text="Names with * for any text, separated by commas. Empty: all tasks.",
                        size=None,
                        verbose_name="tasks",
                    ),
                ),
                (
                    "states",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=10),
                        blank=True,
                        default=list,
                        help_text="Only runs that end in these states. Empty: all ends.",
                        size=None,
                        verbose_name="states",
                    ),
                ),
                ("is_active", models.BooleanField(default=True, verbose_name="active")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="made at",
                    ),
                ),
                (
                    "addresses",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.EmailField(max_length=254),
                        help_text="Separated by commas.",
                        size=None,
                        verbose_name="addresses",
                    ),
                ),
                (
                    "language",
                    models.CharField(
                        default="en",
                        help_text="A code, such as en or de.",
                        max_length=16,
                        verbose_name="language",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="made by",
                    ),
                ),
                (
                    "created_by_token",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="jobs.apitoken",
                        verbose_name="made by the token",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        blank=True,
                        help_text="Only events of this job. Empty: of all.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="jobs.job",
                        verbose_name="job",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty: events of all owners of the installation.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="jobs.owner",
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "mail subscription",
                "verbose_name_plural": "mail subscriptions",
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="WebhookEndpoint",
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
                        max_length=100,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\x00", "The NUL character is not allowed.", inverse_match=True
                            )
                        ],
                        verbose_name="name",
                    ),
                ),
                (
                    "events",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("run.ended", "a run ended"),
                                ("submission.ended", "all runs of a submission ended"),
                                ("job.failing", "a job began to fail"),
                                ("job.recovered", "a job no longer fails"),
                                ("job.late", "a job is late"),
                                ("job.on_time", "a job is no longer late"),
                            ],
                            max_length=32,
                        ),
                        size=None,
                        verbose_name="events",
                    ),
                ),
                (
                    "tasks",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            max_length=255,
                            validators=[
                                django.core.validators.RegexValidator(
                                    "\x00", "The NUL character is not allowed.", inverse_match=True
                                )
                            ],
                        ),
                        blank=True,
                        default=list,
                        help_text="Names with * for any text, separated by commas. Empty: all tasks.",
                        size=None,
                        verbose_name="tasks",
                    ),
                ),
                (
                    "states",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=10),
                        blank=True,
                        default=list,
                        help_text="Only runs that end in these states. Empty: all ends.",
                        size=None,
                        verbose_name="states",
                    ),
                ),
                ("is_active", models.BooleanField(default=True, verbose_name="active")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="made at",
                    ),
                ),
                (
                    "url",
                    models.CharField(
                        max_length=2000,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\x00", "The NUL character is not allowed.", inverse_match=True
                            )
                        ],
                        verbose_name="URL",
                    ),
                ),
                (
                    "has_details",
                    models.BooleanField(
                        default=False,
                        help_text="Send arguments, results and error texts, too, as far as its maker may see them.",
                        verbose_name="with details",
                    ),
                ),
                ("secret", models.BinaryField()),
                ("secret_key", models.SmallIntegerField(db_default=0, editable=False)),
                ("old_secret", models.BinaryField(null=True)),
                ("old_secret_key", models.SmallIntegerField(db_default=0, editable=False)),
                (
                    "old_secret_until",
                    models.DateTimeField(editable=False, null=True, verbose_name="old key until"),
                ),
                ("bound_to", models.CharField(editable=False, max_length=32)),
                (
                    "failure_count",
                    models.PositiveIntegerField(
                        db_default=0, editable=False, verbose_name="failures in a row"
                    ),
                ),
                (
                    "retry_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="next attempt"),
                ),
                (
                    "disabled_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="disabled at"),
                ),
                (
                    "disabled_reason",
                    models.CharField(
                        blank=True, editable=False, max_length=500, verbose_name="reason"
                    ),
                ),
                (
                    "last_delivered_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="last delivery"),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="made by",
                    ),
                ),
                (
                    "created_by_token",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="jobs.apitoken",
                        verbose_name="made by the token",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        blank=True,
                        help_text="Only events of this job. Empty: of all.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="jobs.job",
                        verbose_name="job",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty: events of all owners of the installation.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="jobs.owner",
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "webhook",
                "verbose_name_plural": "webhooks",
                "ordering": ("-id",),
            },
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("event_id", models.CharField(max_length=100, verbose_name="event")),
                ("event_type", models.CharField(max_length=32, verbose_name="kind")),
                ("event_at", models.DateTimeField(verbose_name="at")),
                ("data", models.JSONField(verbose_name="data")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("delivered", "delivered"),
                            ("failed", "failed"),
                        ],
                        max_length=10,
                        verbose_name="state",
                    ),
                ),
                (
                    "attempt_count",
                    models.PositiveIntegerField(db_default=0, verbose_name="attempts"),
                ),
                ("next_at", models.DateTimeField(verbose_name="next attempt")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="made at"
                    ),
                ),
                ("ended_at", models.DateTimeField(null=True, verbose_name="ended at")),
                ("tries", models.JSONField(db_default=[])),
                (
                    "owner",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="jobs.owner",
                    ),
                ),
                (
                    "endpoint",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="jobs.webhookendpoint",
                    ),
                ),
            ],
            options={
                "verbose_name": "webhook delivery",
                "verbose_name_plural": "webhook deliveries",
                "ordering": ("-id",),
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="JobAlarm",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("failing", "failing"), ("late", "late")],
                        editable=False,
                        max_length=16,
                    ),
                ),
                (
                    "since_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="jobs.job"
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("job", "kind"), name="job_alarm_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="MailDigest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("subject", models.CharField(max_length=300)),
                ("change", models.CharField(max_length=50)),
                ("held", models.JSONField(db_default=[])),
                ("held_count", models.PositiveIntegerField(db_default=0)),
                ("sending", models.JSONField(null=True)),
                ("sending_count", models.PositiveIntegerField(db_default=0)),
                ("failure_count", models.PositiveSmallIntegerField(db_default=0)),
                ("next_at", models.DateTimeField()),
                ("sent_at", models.DateTimeField(null=True)),
                (
                    "subscription",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="jobs.mailsubscription",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            ("held_count__gt", 0), ("sending__isnull", False), _connector="OR"
                        ),
                        fields=["next_at"],
                        name="mail_digest_due",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("subscription", "subject", "change"), name="mail_digest_once"
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="webhookendpoint",
            index=models.Index(fields=["owner", "-id"], name="webhook_of_owner"),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(fields=["endpoint", "-id"], name="webhook_delivery_of"),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(fields=["created_at"], name="webhook_delivery_made"),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(
                condition=models.Q(("state", "waiting")),
                fields=["endpoint", "next_at"],
                name="webhook_delivery_due",
            ),
        ),
        migrations.AddConstraint(
            model_name="webhookdelivery",
            constraint=models.UniqueConstraint(
                fields=("endpoint", "event_id"), name="webhook_event_once_per_endpoint"
            ),
        ),
        migrations.RunSQL((SQL / "0020_webhooks.sql").read_text(), migrations.RunSQL.noop),
        migrations.RunPython(make_periodic_task, migrations.RunPython.noop),
    ]
