from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0022_error_texts_permission")]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="mailsubscription",
            name="disabled_at",
            field=models.DateTimeField(editable=False, null=True, verbose_name="disabled at"),
        ),
        migrations.AddField(
            model_name="mailsubscription",
            name="disabled_reason",
            field=models.CharField(
                blank=True, db_default="", editable=False, max_length=500, verbose_name="reason"
            ),
        ),
        migrations.AlterField(
            model_name="webhookendpoint",
            name="disabled_reason",
            field=models.CharField(
                blank=True, db_default="", editable=False, max_length=500, verbose_name="reason"
            ),
        ),
    ]
