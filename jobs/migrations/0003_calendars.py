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


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("jobs", "0002_workers_and_ticks"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Calendar",
            fields=[
                ID,
                (
                    "name",
                    models.CharField(max_length=200, validators=[NO_NUL], verbose_name="name"),
                ),
                (
                    "cut_off_seconds",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="In this many seconds before the close no run starts.",
                        validators=[MaxValueValidator(86400)],
                        verbose_name="start cut-off in seconds",
                    ),
                ),
                (
                    "end",
                    models.CharField(
                        choices=[
                            ("let run", "let it run"),
                            ("soft", "ask it to stop (soft time limit)"),
                            ("hard", "end its process (hard time limit)"),
                        ],
                        default="let run",
                        max_length=8,
                        verbose_name="at the close",
                    ),
                ),
                (
                    "spread_seconds",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="When it opens, the runs that waited for it start spread over this many seconds.",
                        validators=[MaxValueValidator(3600)],
                        verbose_name="spread starts over seconds",
                    ),
                ),
                (
                    "needs_approval",
                    models.BooleanField(
                        default=True,
                        help_text="Its windows count only when they are approved. Freezes always count.",
                        verbose_name="needs approval",
                    ),
                ),
                (
                    "four_eyes",
                    models.BooleanField(
                        default=True,
                        help_text="The person who requests a window may not approve it.",
                        verbose_name="four eyes",
                    ),
                ),
                ("version", models.PositiveIntegerField(default=0, editable=False)),
                ("computed_until", models.DateTimeField(editable=False, null=True)),
                ("feed_hash", models.BinaryField(null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=Now(), editable=False, verbose_name="created at"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty: a shared calendar, which may apply to any owner.",
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="calendars",
                        to="jobs.owner",
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
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
            },
        ),
        migrations.CreateModel(
            name="Opening",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "calendar_id",
                        "opens_at",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("opens_at", models.DateTimeField()),
                ("closes_at", models.DateTimeField()),
                (
                    "calendar",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="openings", to="jobs.calendar"
                    ),
                ),
            ],
            options={"verbose_name": "opening", "verbose_name_plural": "openings"},
        ),
        migrations.CreateModel(
            name="TargetGroup",
            fields=[
                ID,
                (
                    "name",
                    models.CharField(max_length=200, validators=[NO_NUL], verbose_name="name"),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=models.PROTECT, related_name="target_groups", to="jobs.owner"
                    ),
                ),
                (
                    "targets",
                    models.ManyToManyField(
                        blank=True, related_name="groups", to="jobs.target", verbose_name="targets"
                    ),
                ),
            ],
            options={
                "verbose_name": "target group",
                "verbose_name_plural": "target groups",
                "ordering": ("owner", "name"),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "name"), name="target_group_once_per_owner"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Attachment",
            fields=[
                ID,
                (
                    "job",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="attachments",
                        to="jobs.job",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="attachments",
                        to="jobs.owner",
                    ),
                ),
                (
                    "target",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="attachments",
                        to="jobs.target",
                    ),
                ),
                (
                    "calendar",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="attachments", to="jobs.calendar"
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="attachments",
                        to="jobs.targetgroup",
                    ),
                ),
            ],
            options={
                "verbose_name": "attachment",
                "verbose_name_plural": "attachments",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("group__isnull", True),
                                ("job__isnull", True),
                                ("owner__isnull", False),
                                ("target__isnull", True),
                            ),
                            models.Q(
                                ("group__isnull", True),
                                ("job__isnull", False),
                                ("owner__isnull", True),
                                ("target__isnull", True),
                            ),
                            models.Q(
                                ("group__isnull", True),
                                ("job__isnull", True),
                                ("owner__isnull", True),
                                ("target__isnull", False),
                            ),
                            models.Q(
                                ("group__isnull", False),
                                ("job__isnull", True),
                                ("owner__isnull", True),
                                ("target__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="attachment_to_one_thing",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("owner__isnull", False)),
                        fields=("calendar", "owner"),
                        name="attachment_once_per_owner",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("job__isnull", False)),
                        fields=("calendar", "job"),
                        name="attachment_once_per_job",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("target__isnull", False)),
                        fields=("calendar", "target"),
                        name="attachment_once_per_target",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("group__isnull", False)),
                        fields=("calendar", "group"),
                        name="attachment_once_per_group",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Window",
            fields=[
                ID,
                (
                    "effect",
                    models.CharField(
                        choices=[("window", "window"), ("freeze", "freeze")],
                        default="window",
                        max_length=8,
                        verbose_name="effect",
                    ),
                ),
                (
                    "starts",
                    models.CharField(
                        help_text="By the clock of its zone: 2026-01-03T22:00:00",
                        max_length=26,
                        verbose_name="starts",
                    ),
                ),
                (
                    "duration_seconds",
                    models.PositiveIntegerField(
                        validators=[MinValueValidator(1), MaxValueValidator(2678400)],
                        verbose_name="duration in seconds",
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
                    "rule",
                    models.CharField(
                        blank=True,
                        help_text="An RRULE of RFC 5545, such as FREQ=WEEKLY;BYDAY=SA,SU. Empty: once.",
                        max_length=500,
                        validators=[NO_NUL],
                        verbose_name="recurrence",
                    ),
                ),
                (
                    "excluded",
                    ArrayField(
                        base_field=models.CharField(max_length=26),
                        default=list,
                        size=None,
                        verbose_name="without",
                    ),
                ),
                (
                    "added",
                    ArrayField(
                        base_field=models.CharField(max_length=26),
                        default=list,
                        size=None,
                        verbose_name="and also",
                    ),
                ),
                (
                    "valid_from",
                    models.DateTimeField(blank=True, null=True, verbose_name="valid from"),
                ),
                (
                    "valid_until",
                    models.DateTimeField(blank=True, null=True, verbose_name="valid until"),
                ),
                (
                    "reason",
                    models.CharField(
                        blank=True, max_length=500, validators=[NO_NUL], verbose_name="reason"
                    ),
                ),
                ("revision", models.PositiveIntegerField(default=1, editable=False)),
                (
                    "requested_at",
                    models.DateTimeField(
                        db_default=Now(), editable=False, verbose_name="asked for at"
                    ),
                ),
                ("source", models.CharField(blank=True, editable=False, max_length=200)),
                ("source_uid", models.CharField(blank=True, editable=False, max_length=500)),
                (
                    "calendar",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="windows", to="jobs.calendar"
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="asked for by",
                    ),
                ),
            ],
            options={
                "verbose_name": "window or freeze",
                "verbose_name_plural": "windows and freezes",
                "ordering": ("calendar", "id"),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("duration_seconds__range", (1, 2678400))),
                        name="window_duration_1s_to_31d",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="WindowDecision",
            fields=[
                ID,
                ("revision", models.PositiveIntegerField()),
                (
                    "decision",
                    models.CharField(
                        choices=[
                            ("approved", "approved"),
                            ("rejected", "rejected"),
                            ("revoked", "revoked"),
                        ],
                        max_length=8,
                        verbose_name="decision",
                    ),
                ),
                (
                    "occurrence_at",
                    models.DateTimeField(
                        help_text="When it starts. Empty: all of them.",
                        null=True,
                        verbose_name="occurrence",
                    ),
                ),
                ("expires_at", models.DateTimeField(null=True, verbose_name="expires at")),
                ("actor_name", models.CharField(max_length=150, verbose_name="by")),
                ("at", models.DateTimeField(db_default=Now(), verbose_name="at")),
                ("reason", models.CharField(blank=True, max_length=500, verbose_name="reason")),
                (
                    "actor",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=models.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="by",
                    ),
                ),
                (
                    "window",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="decisions", to="jobs.window"
                    ),
                ),
            ],
            options={
                "verbose_name": "decision on a window",
                "verbose_name_plural": "decisions on windows",
                "ordering": ("id",),
            },
        ),
    ]
