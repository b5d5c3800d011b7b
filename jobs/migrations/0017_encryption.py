from pathlib import Path

import django.contrib.postgres.fields
from django.db import migrations, models

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("jobs", "0016_clocks_of_workers")]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.AddField(
            model_name="worker",
            name="keys",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.SmallIntegerField(), editable=False, null=True, size=None
            ),
        ),
        migrations.RunSQL(
            (SQL / "0017_encryption.sql").read_text(),
            (SQL / "0017_reverse.sql").read_text(),
            state_operations=[
                migrations.AddField(
                    model_name="run", name="error_data", field=models.BinaryField(null=True)
                ),
                migrations.AddField(
                    model_name="run",
                    name="error_key",
                    field=models.SmallIntegerField(db_default=0, editable=False),
                ),
                migrations.AddField(
                    model_name="attempt",
                    name="error_data",
                    field=models.BinaryField(null=True),
                ),
                migrations.AddField(
                    model_name="attempt",
                    name="error_key",
                    field=models.SmallIntegerField(db_default=0, editable=False),
                ),
            ],
        ),
    ]
