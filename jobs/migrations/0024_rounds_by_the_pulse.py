from typing import Any

from django.conf import settings
from django.db import migrations
from django.utils import timezone

# task → seconds between two runs, and the name of its PeriodicTask
PERIODIC = {
    "read_inbox": (1, "read the inbox"),
    "call_hooks": (2, "call hooks"),
    "notify": (1, "send webhooks and mails"),
}
LAST_PRIORITY = 9  # As the other rounds have it.


def remove_periodic_tasks(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001  Django hands both in
    """Remove the PeriodicTasks of rounds that the pulse now sends when they have work."""
    names = [f"fairshift.system.{task}" for task in PERIODIC]
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(task__in=names).delete()
    _say_changed(apps)


def make_periodic_tasks(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001  Django hands both in
    """Make them again, for the code before this migration."""
    intervals = apps.get_model("django_celery_beat", "IntervalSchedule").objects
    tasks = apps.get_model("django_celery_beat", "PeriodicTask").objects
    for task, (seconds, name) in PERIODIC.items():
        # django-celery-beat allows two equal intervals.
        same = {"every": seconds, "period": "seconds"}
        interval = intervals.filter(**same).first() or intervals.create(**same)
        tasks.get_or_create(
            name=f"fairshift: {name}",
            defaults={
                "task": f"fairshift.system.{task}",
                "interval": interval,
                "queue": getattr(settings, "FAIRSHIFT", {}).get("SYSTEM_QUEUE", "system"),
                "priority": LAST_PRIORITY,
                "headers": "{}",
                "description": "Fairshift's own work. Disable it and nothing is lost, only late.",
            },
        )
    _say_changed(apps)


def _say_changed(apps: Any) -> None:
    """Have a running beat read its entries again."""
    changes = apps.get_model("django_celery_beat", "PeriodicTasks").objects
    changes.update_or_create(ident=1, defaults={"last_update": timezone.now()})


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0023_mail_switch"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [migrations.RunPython(remove_periodic_tasks, make_periodic_tasks)]
