"""An import of jobs keeps what it would do, and each person has one that is open."""

from typing import ClassVar

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("jobs", "0008_gating_in_turns"),
    ]

    operations: ClassVar = [
        # Files that nobody has confirmed yet: they are given once more.
        migrations.RunSQL("DELETE FROM jobs_jobimport", migrations.RunSQL.noop),
        migrations.AddField("jobimport", "report", models.BinaryField(null=True)),
        migrations.AddConstraint(
            "jobimport",
            models.UniqueConstraint(fields=("user",), name="jobimport_one_per_person"),
        ),
    ]
