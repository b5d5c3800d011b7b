from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import migrations, models
from django.db.models.functions import Collate, Now

from jobs.models.fields import no_nul, one_line, validate_zone


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
        ("jobs", "0001_owners_and_jobs"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        model(
            "Calendar",
            {
                "verbose_name": "calendar",
                "verbose_name_plural": "calendars",
                "ordering": ("name", "id"),
                "permissions": [
                    ("approve_window", "Can approve, reject and revoke windows"),
                    ("override_window", "Can let runs start outside their windows"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "name"),
                        name="calendar_once_per_owner",
                        nulls_distinct=False,
                    )
                ],
                "indexes": [
                    models.Index(Collate("name", "C"), models.F("owner"), name="calendar_by_name")
                ],
            },
            name=models.CharField("name", max_length=200, validators=[one_line]),
            cut_off_seconds=models.PositiveIntegerField(
                "start cut-off in seconds",
                default=0,
                help_text="In this many seconds before the close no run starts.",
                validators=[MaxValueValidator(86400)],
            ),
            end=models.CharField(
                "at the close",
                max_length=8,
                default="let run",
                choices=[
                    ("let run", "let it run"),
                    ("soft", "ask it to stop (soft time limit)"),
                    ("hard", "end its process (hard time limit)"),
                ],
            ),
            spread_seconds=models.PositiveIntegerField(
                "spread starts over seconds",
                default=0,
                help_text="When it opens, the runs that waited for it start spread over this many seconds.",
                validators=[MaxValueValidator(3600)],
            ),
            needs_approval=models.BooleanField(
                "needs approval",
                default=True,
                help_text="Its windows count only when they are approved. Freezes always count.",
            ),
            four_eyes=models.BooleanField(
                "four eyes",
                default=True,
                help_text="The person who requests a window may not approve it.",
            ),
            version=models.PositiveIntegerField(default=0, editable=False),
            computed_until=models.DateTimeField(null=True, editable=False),
            feed_hash=models.BinaryField(null=True),
            created_at=models.DateTimeField("created at", db_default=Now(), editable=False),
            owner=models.ForeignKey(
                "jobs.owner",
                models.PROTECT,
                verbose_name="owner",
                blank=True,
                null=True,
                help_text="Empty: a shared calendar, which may apply to any owner.",
                related_name="calendars",
            ),
            feed_has_maker=models.BooleanField(default=False, db_default=False, editable=False),
            feed_by=models.ForeignKey(
                settings.AUTH_USER_MODEL,
                models.SET_NULL,
                null=True,
                editable=False,
                related_name="+",
            ),
        ),
        model(
            "Opening",
            {"verbose_name": "opening", "verbose_name_plural": "openings"},
            pk=models.CompositePrimaryKey(
                "calendar_id", "opens_at", blank=True, editable=False, serialize=False
            ),
            opens_at=models.DateTimeField(),
            closes_at=models.DateTimeField(),
            calendar=models.ForeignKey("jobs.calendar", models.CASCADE, related_name="openings"),
        ),
        model(
            "Attachment",
            {
                "verbose_name": "attachment",
                "verbose_name_plural": "attachments",
                "constraints": [
                    models.CheckConstraint(
                        name="attachment_to_one_thing",
                        condition=models.Q(
                            group__isnull=True,
                            job__isnull=True,
                            owner__isnull=False,
                            target__isnull=True,
                        )
                        | models.Q(
                            group__isnull=True,
                            job__isnull=False,
                            owner__isnull=True,
                            target__isnull=True,
                        )
                        | models.Q(
                            group__isnull=True,
                            job__isnull=True,
                            owner__isnull=True,
                            target__isnull=False,
                        )
                        | models.Q(
                            group__isnull=False,
                            job__isnull=True,
                            owner__isnull=True,
                            target__isnull=True,
                        ),
                    ),
                    models.UniqueConstraint(
                        name="attachment_once_per_owner",
                        fields=("calendar", "owner"),
                        condition=models.Q(owner__isnull=False),
                    ),
                    models.UniqueConstraint(
                        name="attachment_once_per_job",
                        fields=("calendar", "job"),
                        condition=models.Q(job__isnull=False),
                    ),
                    models.UniqueConstraint(
                        name="attachment_once_per_target",
                        fields=("calendar", "target"),
                        condition=models.Q(target__isnull=False),
                    ),
                    models.UniqueConstraint(
                        name="attachment_once_per_group",
                        fields=("calendar", "group"),
                        condition=models.Q(group__isnull=False),
                    ),
                ],
            },
            job=models.ForeignKey(
                "jobs.job", models.CASCADE, blank=True, null=True, related_name="attachments"
            ),
            owner=models.ForeignKey(
                "jobs.owner", models.CASCADE, blank=True, null=True, related_name="attachments"
            ),
            target=models.ForeignKey(
                "jobs.target", models.CASCADE, blank=True, null=True, related_name="attachments"
            ),
            calendar=models.ForeignKey("jobs.calendar", models.CASCADE, related_name="attachments"),
            group=models.ForeignKey(
                "jobs.targetgroup",
                models.CASCADE,
                blank=True,
                null=True,
                related_name="attachments",
            ),
        ),
        model(
            "Window",
            {
                "verbose_name": "window or freeze",
                "verbose_name_plural": "windows and freezes",
                "ordering": ("calendar", "id"),
                "constraints": [
                    models.CheckConstraint(
                        name="window_duration_1s_to_31d",
                        condition=models.Q(duration_seconds__range=(1, 2678400)),
                    )
                ],
            },
            effect=models.CharField(
                "effect", max_length=8, default="window", choices=alike("window", "freeze")
            ),
            starts=models.CharField(
                "starts", max_length=26, help_text="By the clock of its zone: 2026-01-03T22:00:00"
            ),
            duration_seconds=models.PositiveIntegerField(
                "duration in seconds", validators=[MinValueValidator(1), MaxValueValidator(2678400)]
            ),
            zone=models.CharField(
                "time zone", max_length=64, default="UTC", validators=[validate_zone]
            ),
            rule=models.CharField(
                "recurrence",
                max_length=500,
                blank=True,
                help_text="An RRULE of RFC 5545, such as FREQ=WEEKLY;BYDAY=SA,SU. Empty: once.",
                validators=[no_nul],
            ),
            excluded=ArrayField(
                models.CharField(max_length=26), verbose_name="without", default=list
            ),
            added=ArrayField(
                models.CharField(max_length=26), verbose_name="and also", default=list
            ),
            valid_from=models.DateTimeField("valid from", blank=True, null=True),
            valid_until=models.DateTimeField("valid until", blank=True, null=True),
            reason=models.CharField("reason", max_length=500, blank=True, validators=[no_nul]),
            revision=models.PositiveIntegerField(default=1, editable=False),
            requested_at=models.DateTimeField("asked for at", db_default=Now(), editable=False),
            source=models.CharField(max_length=200, blank=True, editable=False),
            source_uid=models.CharField(max_length=500, blank=True, editable=False),
            calendar=models.ForeignKey("jobs.calendar", models.CASCADE, related_name="windows"),
            requested_by=models.ForeignKey(
                settings.AUTH_USER_MODEL,
                models.SET_NULL,
                verbose_name="asked for by",
                null=True,
                editable=False,
                related_name="+",
            ),
            requested_by_token=models.ForeignKey(
                "jobs.apitoken",
                models.SET_NULL,
                verbose_name="asked for by the token",
                null=True,
                editable=False,
                related_name="+",
            ),
            earlier_requesters=ArrayField(
                models.CharField(max_length=50),
                default=list,
                db_default=[],
                editable=False,
            ),
        ),
        model(
            "WindowDecision",
            {
                "verbose_name": "decision on a window",
                "verbose_name_plural": "decisions on windows",
                "ordering": ("id",),
            },
            revision=models.PositiveIntegerField(),
            decision=models.CharField(
                "decision", max_length=8, choices=alike("approved", "rejected", "revoked")
            ),
            occurrence_at=models.DateTimeField(
                "occurrence", null=True, help_text="When it starts. Empty: all of them."
            ),
            expires_at=models.DateTimeField("expires at", null=True),
            actor_name=models.CharField("by", max_length=150),
            at=models.DateTimeField("at", db_default=Now()),
            reason=models.CharField("reason", max_length=500, blank=True),
            actor=models.ForeignKey(
                settings.AUTH_USER_MODEL,
                models.DO_NOTHING,
                verbose_name="by",
                null=True,
                related_name="+",
                db_constraint=False,
            ),
            window=models.ForeignKey("jobs.window", models.CASCADE, related_name="decisions"),
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
    ]
