import django.db.models.deletion
from django.db import migrations, models

from jobs.models.fields import mark_deleted


class Migration(migrations.Migration):
    dependencies = [("jobs", "0020_webhooks_and_mails")]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="webhookendpoint",
            name="deleted_at",
            field=models.DateTimeField(editable=False, null=True, verbose_name="deleted at"),
        ),
        migrations.AddConstraint(
            model_name="webhookendpoint",
            constraint=models.CheckConstraint(
                condition=models.Q(("deleted_at", None), ("is_active", False), _connector="OR"),
                name="webhook_deleted_is_inactive",
            ),
        ),
        migrations.AlterField(
            model_name="webhookendpoint",
            name="owner",
            field=models.ForeignKey(
                null=True,
                on_delete=mark_deleted,
                related_name="+",
                to="jobs.owner",
                verbose_name="owner",
            ),
        ),
        migrations.AlterField(
            model_name="webhookendpoint",
            name="job",
            field=models.ForeignKey(
                null=True,
                on_delete=mark_deleted,
                related_name="+",
                to="jobs.job",
                verbose_name="job",
            ),
        ),
        migrations.AlterField(
            model_name="webhookdelivery",
            name="owner",
            field=models.ForeignKey(
                db_constraint=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="jobs.owner",
            ),
        ),
    ]
