from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0007_unknown_tasks"),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="owner",
            name="gated_to",
            field=models.UUIDField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="owner",
            name="gating_version",
            field=models.PositiveIntegerField(db_default=0, editable=False),
        ),
    ]
