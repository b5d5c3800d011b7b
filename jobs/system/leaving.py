"""What is left of Fairshift in an installation that leaves it, and its removal from PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from celery import current_app
from django.apps import apps
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.db.models import Count, Q
from django_celery_beat.models import IntervalSchedule, PeriodicTask, PeriodicTasks

from fleet import OWN_TASKS, count_keys, messages_left
from jobs.core import sql
from jobs.core.conf import setting
from jobs.definitions import inbox
from jobs.models import Backfill, Leader, Run, Worker
from jobs.system.lease import BEAT
from jobs.system.periodic import EVERY

_ROLE: Final = "fairshift_tenant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What is left; `work` and `processes` have no zeros."""

    work: Mapping[str, int]
    """Work that the workers finish: runs by state, backfills, inbox, hints, leased messages."""
    processes: Mapping[str, int]
    """Workers and beats that run."""
    calls: int
    """Calls of plain tasks that wait in fair queues."""
    entries: int
    """Fairshift's own PeriodicTasks."""
    keys: int
    """Fairshift's keys in Redis."""


def left() -> Left:
    """Return what is left; raise BrokerUnavailable if Redis does not answer."""
    timeout = setting("PUBLISH_TIMEOUT_SECONDS")
    messages = messages_left(current_app, timeout=timeout)
    runs = Run.objects.open().values_list("state").annotate(Count("id")).order_by("state")
    work = {
        **{f"{state} runs": count for state, count in runs},
        "backfills": Backfill.objects.filter(done_at=None).count(),
        "calls in the inbox": int(inbox.is_any_waiting()),
        "hints": messages["hints"],
        "leased messages": messages["leased"],
    }
    processes = {
        "workers": Worker.objects.beating().count(),
        "beats": Leader.objects.filter(name=BEAT, until__gt=sql.now()).count(),
    }
    return Left(
        work={name: count for name, count in work.items() if count},
        processes={name: count for name, count in processes.items() if count},
        calls=messages["calls"],
        entries=_entries().count(),
        keys=count_keys(current_app, timeout=timeout),
    )


def remove_entries() -> int:
    """Remove Fairshift's own PeriodicTasks, and intervals that only these used; return how many."""
    with transaction.atomic():
        rows = _entries()
        intervals = set(rows.values_list("interval_id", flat=True)) - {None}
        count = rows._raw_delete(connection.alias)
        seconds = {seconds for seconds, _label in EVERY.values()}
        made = Q(pk__in=intervals) | Q(period="seconds", every__in=seconds)
        IntervalSchedule.objects.filter(made, periodictask=None).delete()
        PeriodicTasks.update_changed()
    return count


def erase() -> list[str]:
    """Drop all tables of Fairshift, with what Django and PostgreSQL know of them.

    Returns what this user of PostgreSQL may not remove. It can be repeated.
    """
    # Migrations that are taken back make old entries again.
    call_command("migrate", "jobs", "zero", verbosity=0, interactive=False)
    remove_entries()
    if apps.is_installed("django.contrib.contenttypes"):
        from django.contrib.contenttypes.models import ContentType

        # With the permissions of the models.
        ContentType.objects.filter(app_label="jobs").delete()
    return _remove_role()


def _remove_role() -> list[str]:
    """Remove the role of requests; it stays while another database of the server has it."""
    if not sql.query("SELECT 1 AS found FROM pg_roles WHERE rolname = %s", [_ROLE]):
        return []
    try:
        with transaction.atomic():
            sql.query(f"DROP OWNED BY {_ROLE}")
            sql.query(f"DROP ROLE {_ROLE}")
    except DatabaseError as error:
        return [f"the role {_ROLE} of PostgreSQL: {str(error).splitlines()[0]}"]
    return []


def _entries() -> Any:
    return PeriodicTask.objects.filter(task__startswith=OWN_TASKS)
