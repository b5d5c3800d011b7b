"""The PeriodicTasks by which celery-beat drives Fairshift: missing ones are made.

`migrate` and `flush` make them by Django's signal post_migrate, and each beat at its start and once
a minute. Only a round for which there is no PeriodicTask is missing: one that an operator has
switched off, renamed or given another interval stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import iter_modules
from typing import Any, Final

from django.db import connections, router
from django.db.migrations.recorder import MigrationRecorder
from django.db.models.signals import post_migrate, pre_save
from django_celery_beat.models import PeriodicTask, PeriodicTasks

from jobs.core.conf import setting
from jobs.definitions.periodic_tasks import interval

EVERY: Final[Mapping[str, tuple[int, str]]] = {
    "pulse": (1, "pulse"),
    "promote": (1, "promote due runs"),
    "backfill": (5, "make runs of backfills"),
    "settle": (5, "record pauses"),
    "rescue": (5, "rescue runs of lost workers"),
    "sweep": (5, "sweep for lost hints"),
    "make_partitions": (3_600, "make partitions"),
    "extend_openings": (3_600, "extend openings"),
    "roll_up": (10, "roll up minutes"),
    "remove_old_history": (600, "remove old history"),
}
"""Each round, with the seconds between two of them and the name of its PeriodicTask."""
OURS: Final = "fairshift"
"""What the names of Fairshift's PeriodicTasks begin with, those of jobs too."""
LAST_PRIORITY: Final = 9
"""Ticks come first: they do not wait behind rounds."""


def missing() -> list[str]:
    """Return the names of the PeriodicTasks that are missing, in the order of EVERY."""
    return [_name(round_) for round_ in _missing()]


def make_missing() -> list[str]:
    """Make the PeriodicTasks that are missing; return their names. Safe to repeat, and at once."""
    made = []
    for round_ in _missing():
        seconds, _label = EVERY[round_]
        _row, is_new = PeriodicTask.objects.get_or_create(
            name=_name(round_),
            defaults={
                "task": task_of(round_),
                "interval": interval(seconds),
                "queue": setting("SYSTEM_QUEUE"),
                "priority": LAST_PRIORITY,
                "description": "Fairshift's own work. Disable it and nothing is lost, only late.",
            },
        )
        made += [_name(round_)] if is_new else []
    if made:
        # django-celery-beat's signal comes before the row: a beat may have read the rows meanwhile.
        PeriodicTasks.update_changed()
    return made


def keep_after_migrations(app: Any) -> None:
    """Have `migrate` and `flush` make what is missing, and `loaddata` replace what they made."""
    post_migrate.connect(_after_migrations, sender=app, dispatch_uid="fairshift periodic")
    pre_save.connect(_before_load, sender=PeriodicTask, dispatch_uid="fairshift periodic")


def _missing() -> list[str]:
    """Return the rounds without a PeriodicTask."""
    rows = PeriodicTask.objects.filter(name__in=[_name(round_) for round_ in EVERY])
    known = set(rows.values_list("task", flat=True))
    absent = [round_ for round_ in EVERY if task_of(round_) not in known]
    if not absent:
        return []
    # Renamed ones; `task` has no index, and there may be many PeriodicTasks.
    renamed = PeriodicTask.objects.filter(task__in=map(task_of, absent))
    known = set(renamed.values_list("task", flat=True))
    return [round_ for round_ in absent if task_of(round_) not in known]


def _name(round_: str) -> str:
    return f"{OURS}: {EVERY[round_][1]}"


def task_of(round_: str) -> str:
    """Return the name of the Celery task of a round."""
    return f"fairshift.system.{round_}"


def _after_migrations(using: str, **_signal: Any) -> None:
    # After `migrate jobs zero`, as of an installation that leaves, none comes back.
    if using == router.db_for_write(PeriodicTask) and is_migrated(using):
        make_missing()


def is_migrated(using: str) -> bool:
    """Say whether all migrations of Fairshift are applied."""
    from jobs import migrations

    applied = MigrationRecorder(connections[using]).applied_migrations()
    names = {one.name for one in iter_modules(migrations.__path__)}
    return all(("jobs", name) in applied for name in names)


def _before_load(instance: PeriodicTask, raw: bool, using: str, **_signal: Any) -> None:
    """Before `loaddata` stores one of ours, delete one with that name and another id."""
    if raw and instance.name.startswith(OURS):
        same = PeriodicTask.objects.using(using).filter(name=instance.name)
        same.exclude(pk=instance.pk)._raw_delete(using)
