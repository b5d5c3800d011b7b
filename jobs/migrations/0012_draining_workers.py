from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("jobs", "0011_search_and_audit")]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="worker",
            name="draining_since",
            field=models.DateTimeField(null=True, verbose_name="draining since"),
        ),
    ]
