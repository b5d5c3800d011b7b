from typing import Any

from django.db import migrations

TASKS = ("read_inbox", "call_hooks", "notify")


def remove_periodic_tasks(apps: Any, schema_editor: Any) -> None:  # noqa: ARG001  Django hands both in
    """Remove the PeriodicTasks of rounds that the pulse now sends when they have work."""
    names = [f"fairshift.system.{task}" for task in TASKS]
    apps.get_model("django_celery_beat", "PeriodicTask").objects.filter(task__in=names).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0023_mail_switch"),
        ("django_celery_beat", "0019_alter_periodictasks_options"),
    ]

    operations = [migrations.RunPython(remove_periodic_tasks, migrations.RunPython.noop)]
