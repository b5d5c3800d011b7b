from typing import Any

from django.conf import settings
from django.db import migrations

# task → seconds between two runs, and the name of its PeriodicTask
PERIODIC = {
    "pulse": (1, "pulse"),
    "read_inbox": (1, "read the inbox"),
    "promote": (1, "promote due runs"),
    "backfill": (5, "make runs of backfills"),
    "settle": (5, "record pauses"),
    "rescue": (5, "rescue runs of lost workers"),
    "sweep": (5, "sweep for lost hints"),
    "make_partitions": (3_600, "make partitions"),
    "extend_openings": (3_600, "extend openings"),
}
LAST_PRIORITY = 9  # Ticks have the first, so that they do not wait behind a backlog of these.


def make_periodic_tasks(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001  Django hands both in
    """Make the PeriodicTasks that drive Fairshift, on the queue of its system worker."""
    intervals = apps.get_model("django_celery_beat", "IntervalSchedule").objects
    tasks = apps.get_model("django_celery_beat", "PeriodicTask").objects
    queue = getattr(settings, "FAIRSHIFT", {}).get("SYSTEM_QUEUE", "system")
    for task, (seconds, name) in PERIODIC.items():
        # django-celery-beat allows two equal intervals.
        same = {"every": seconds, "period": "seconds"}
        interval = intervals.filter(**same).first() or intervals.create(**same)
        tasks.get_or_create(
            name=f"fairshift: {name}",
            defaults={
                "task": f"fairshift.system.{task}",
                "interval": interval,
                "queue": queue,
                "priority": LAST_PRIORITY,
                "headers": "{}",
                "description": "Fairshift's own work. Disable it and nothing is lost, only late.",
            },
        )


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0005_functions"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [migrations.RunPython(make_periodic_tasks, migrations.RunPython.noop)]
