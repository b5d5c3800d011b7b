from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0028_makers_of_webhooks_and_feeds")]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="leader",
            name="clock_ahead_seconds",
            field=models.FloatField(null=True),
        ),
    ]
