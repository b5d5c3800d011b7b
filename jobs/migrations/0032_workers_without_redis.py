from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0031_flat_lists_of_interests")]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="worker",
            name="redis_answered_at",
            field=models.DateTimeField(null=True, verbose_name="last answer of Redis"),
        ),
    ]
