"""The workers: which are alive, what each can run, its runs now, and draining; and beat."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import F, QuerySet
from django.http import HttpResponse

from jobs.actions.filters.workers import STATES, WorkerFilter
from jobs.actions.workers import WORKERS
from jobs.core import barrier
from jobs.core.conf import setting
from jobs.core.counting import capped_count
from jobs.core.sql import now
from jobs.models import Cursor, Run, Tick, Worker
from jobs.pages.kit.actions import buttons
from jobs.pages.kit.errors import not_found
from jobs.pages.kit.lists import FilterForm
from jobs.pages.kit.visit import Visit, page
from jobs.recurring.health import late_spans
from jobs.runs.reads.flower import flower_address
from jobs.runs.reads.workers import active_counts, state_of, with_state
from jobs.schedules import moment_of
from jobs.system.state import system_state

MOST: Final = 200
"""Workers in the list at most: those that have not stopped, then those that stopped last."""
GONE_FOR: Final = timedelta(days=1)
"""How long a worker that has gone is listed."""
RUNS: Final = 100
_SIGNS: Final = (("●", "good"), ("▽", "warn"), ("▲", "warn"), ("✕", "bad"), ("–", "idle"))
PILLS: Final = {
    state: (word, *sign) for (state, word), sign in zip(STATES.items(), _SIGNS, strict=True)
}
"""The word, the sign and the tone of each state."""


class Shown(NamedTuple):
    """A worker in the list. `beat_age` None: its heartbeat is on time."""

    worker: Any
    state: str
    pill: tuple[Any, str, str]
    why_idle: str
    active: int
    beat_age: timedelta | None
    flower: str


@page("workers", permission="jobs.view_worker")
def workers(visit: Visit) -> HttpResponse:
    """Show the workers that run, and those that have gone within a day; and beat."""
    form = FilterForm(visit, WorkerFilter)
    # Workers have no owner, and are not readable behind the barrier.
    with barrier.lifted():
        system, ticks = system_state(), _ticks()
        recent = form.narrow(with_state(Worker.objects.filter(heartbeat_at__gt=now() - GONE_FOR)))
        # A day of deploys has many that stopped: they must not hide those that are alive.
        order = (F("stopped_at").desc(nulls_first=True), "-started_at", "-pk")
        rows = list(recent.order_by(*order)[:MOST])
    found = _shown(visit, rows)
    found.sort(key=lambda one: list(PILLS).index(one.state))
    return visit.show(
        "jobs/pages/workers/list.html",
        live="jobs/pages/workers/live.html",
        form=form,
        queue=form.data.get("queue", ""),
        system=system,
        ticks=ticks,
        admin_url=visit.admin_address("worker_changelist"),
        workers=found,
        active=capped_count(visit.rows(Run.objects.active())),
        has_more=len(rows) == MOST,
        flower=flower_address(),
    )


@page("workers", permission="jobs.view_worker")
def worker(visit: Visit, worker_id: UUID) -> HttpResponse:
    """Show one worker, with the runs of the visitor's owners that it has now."""
    found = _one(worker_id)
    runs = visit.rows(Run.objects.active()).filter(worker=worker_id)
    newest = (
        runs.select_related("owner", "job")
        .defer("payload", "result", "checkpoint", "looks")
        .order_by("id")
    )
    return visit.show(
        "jobs/pages/workers/one.html",
        live="jobs/pages/workers/one_live.html",
        one=_shown(visit, [found])[0],
        admin_url=visit.admin_address("worker_change", worker_id),
        runs=list(newest[:RUNS]),
        task_count=len(found.tasks or ()),
        buttons=buttons(visit, WORKERS, found),
    )


def _ticks() -> dict[str, Any]:
    """Return until when due times were handed out, and since when some are not triggered."""
    cursor = Cursor.objects.order_by("pk").first()
    late = [span.first_slot for span in late_spans(now=now())]
    return {
        "handed_out_until": cursor and moment_of(cursor.slot),
        "open_count": capped_count(Tick.objects.filter(done_at__isnull=True)),
        "behind_since": moment_of(min(late)) if late else None,
    }


def _one(worker_id: UUID) -> Any:
    with barrier.lifted():
        rows: QuerySet[Any] = with_state(Worker.objects.filter(pk=worker_id))
        found = rows.first()
    if found is None:
        raise not_found()
    return found


def _shown(visit: Visit, rows: list[Any]) -> list[Shown]:
    counts = active_counts(visit.access, [row.pk for row in rows])
    with barrier.lifted():
        at = now()
    return [
        Shown(
            worker=row,
            state=(state := state_of(row)),
            pill=PILLS[state],
            why_idle=row.why_idle() if state == "idle" else "",
            active=counts.get(row.pk, 0),
            beat_age=_late(at - row.heartbeat_at),
            flower=flower_address("worker", row.hostname),
        )
        for row in rows
    ]


def _late(age: timedelta) -> timedelta | None:
    # An age of each second would change the page with each poll.
    return age if age > timedelta(seconds=2 * setting("HEARTBEAT_SECONDS")) else None
