from pathlib import Path

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import jobs.models.fields

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0006_periodic_tasks"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.CreateModel(
            name="ApiToken",
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
                        help_text="The program that uses it, for the audit.",
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
                    "prefix",
                    models.CharField(
                        editable=False, max_length=16, unique=True, verbose_name="prefix"
                    ),
                ),
                ("digest", models.BinaryField(max_length=32, unique=True)),
                (
                    "scopes",
                    models.JSONField(
                        validators=[jobs.models.fields.validate_scopes], verbose_name="scopes"
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="made at",
                    ),
                ),
                (
                    "expires_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="Empty: it does not expire.",
                        null=True,
                        verbose_name="expires at",
                    ),
                ),
                (
                    "revoked_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="revoked at"),
                ),
                (
                    "last_used_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="last used at"),
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
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty: a token for all owners of the installation.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tokens",
                        to="jobs.owner",
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "API token",
                "verbose_name_plural": "API tokens",
                "ordering": ("-id",),
            },
        ),
        migrations.AddField(
            model_name="auditentry",
            name="token",
            field=models.ForeignKey(
                db_constraint=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="jobs.apitoken",
                verbose_name="API token",
            ),
        ),
        migrations.AddIndex(
            model_name="apitoken",
            index=models.Index(fields=["owner", "-id"], name="token_of_owner"),
        ),
        migrations.RunSQL(
            (SQL / "0007_barrier.sql").read_text(), (SQL / "0007_reverse.sql").read_text()
        ),
    ]
