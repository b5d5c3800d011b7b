from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).parent / "sql" / "0007_logs.sql"


class Migration(migrations.Migration):
    dependencies = [("jobs", "0006_looks")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    "LogRow",
                    [
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "run_id",
                                "token",
                                "first_line",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("run_id", models.UUIDField()),
                        ("token", models.PositiveIntegerField()),
                        ("first_line", models.PositiveIntegerField()),
                        ("line_count", models.PositiveIntegerField()),
                        ("first_at", models.DateTimeField()),
                        ("key", models.SmallIntegerField(db_default=0)),
                        ("data", models.BinaryField()),
                    ],
                    {"db_table": "jobs_log"},
                )
            ],
            database_operations=[migrations.RunSQL(SQL.read_text(), "DROP TABLE jobs_log")],
        )
    ]
