from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0015_retention")]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="worker",
            name="clock_ahead_seconds",
            field=models.FloatField(null=True, verbose_name="clock ahead (s)"),
        ),
    ]
