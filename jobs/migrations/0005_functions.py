from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parent / "sql"
FILES = (
    "0005_audit",
    "0005_due_jobs",
    "0005_calendars",
    "0005_calendar_changes",
    "0005_known_tasks",
    "0005_retention",
    "0005_barrier",
)


class Migration(migrations.Migration):
    initial = True

    dependencies = [("jobs", "0004_webhooks_and_mails")]

    operations = [
        migrations.RunSQL(
            "".join((SQL / f"{name}.sql").read_text() for name in FILES),
            (SQL / "0005_reverse.sql").read_text(),
        )
    ]
