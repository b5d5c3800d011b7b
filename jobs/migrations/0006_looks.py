from django.db import migrations, models

UP = """
SET LOCAL lock_timeout = '5s';
ALTER TABLE jobs_run ADD COLUMN look jsonb, ADD COLUMN looks bytea,
    ADD COLUMN looks_key smallint NOT NULL DEFAULT 0;
"""
DOWN = "ALTER TABLE jobs_run DROP COLUMN look, DROP COLUMN looks, DROP COLUMN looks_key"


class Migration(migrations.Migration):
    dependencies = [("jobs", "0005_functions")]

    operations = [
        migrations.RunSQL(
            UP,
            DOWN,
            state_operations=[
                migrations.AddField("run", "look", models.JSONField(null=True)),
                migrations.AddField("run", "looks", models.BinaryField(null=True)),
                migrations.AddField(
                    "run", "looks_key", models.SmallIntegerField(db_default=0, editable=False)
                ),
            ],
        )
    ]
