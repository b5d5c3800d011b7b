from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("jobs", "0026_names_of_one_line")]

    operations = [
        migrations.RunSQL(
            (SQL / "0027_shared_calendars.sql").read_text(), (SQL / "0027_reverse.sql").read_text()
        ),
        migrations.AlterField(
            model_name="run",
            name="window_policy",
            field=models.CharField(
                choices=[
                    ("", "obeys the calendars that apply"),
                    ("required", "starts only where a calendar applies"),
                    ("overridden", "starts outside its windows: overridden"),
                    ("shared", "obeys shared calendars only: its owner's are overridden"),
                ],
                db_default="",
                max_length=10,
                verbose_name="windows",
            ),
        ),
    ]
