from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0005_windows"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="run",
            name="earlier_attempts",
            # No PositiveIntegerField: its CHECK would read all runs.
            field=models.IntegerField(db_default=0, editable=False),
        ),
    ]
