"""Ticking: all due jobs of a span of slots are triggered, chunk by chunk.

Any system worker may take a tick, and several may take the same one: each chunk is done under the
tick's lock, and the tick records its progress. Jobs are triggered by id. Within a chunk hints are
published owner by owner, which the fair queue accepts faster.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import Final

from django.db import transaction
from django.db.models.functions import Now

from fleet import BrokerUnavailable, crash_point
from jobs.core import sql
from jobs.models import HistoryPolicy, OverlapPolicy, Tick
from jobs.recurring import misfire, overlap
from jobs.recurring.due import Due, due_jobs
from jobs.recurring.pulse import defer_locked
from jobs.recurring.trigger import make_runs_apart, publish_due_hints
from jobs.schedules.phases import SLOTS

CHUNK: Final = 10_000
"""About how many due times one transaction handles; those of one job stay together."""


def run_tick(tick_id: int) -> int:
    """Trigger what is due in a tick and not done yet; return how many.

    Raises BrokerUnavailable while hints of jobs without history cannot be published: the tick
    continues there when it is sent again.
    """
    found = sql.run("recurring/take_tick", {"id": tick_id})
    if not found:
        return 0
    [taken] = found
    if taken["kind"] == Tick.Kind.CATCH_UP:
        return misfire.catch_up(Tick.objects.get(pk=tick_id))
    if taken["kind"] == Tick.Kind.HELD:
        return misfire.judge_locked(tick_id)
    total = 0
    due = due_jobs(taken["first_slot"], taken["end_slot"])
    for chunk in _split_chunks(due[bisect_right(due, taken["after_job"], key=itemgetter(0)) :]):
        made = _trigger_chunk(tick_id, chunk)
        if made is None:
            return total
        total += made
    crash_point("tick.before_done")
    Tick.objects.filter(pk=tick_id, done_at=None).update(done_at=Now())
    return total


def _split_chunks(due: Sequence[Due]) -> Iterator[Sequence[Due]]:
    start = 0
    while start < len(due):
        end = min(start + CHUNK, len(due))
        while end < len(due) and due[end].job_id == due[end - 1].job_id:
            end += 1
        yield due[start:end]
        start = end


def _trigger_chunk(tick_id: int, due: Sequence[Due]) -> int | None:
    """Trigger a chunk and record it in the tick; return how many, None when another worker has it.

    Rows are committed also while the broker is away: only hints without rows are sent again.
    """
    failure: BrokerUnavailable | None = None
    with transaction.atomic():
        sql.bound_waits()
        mine = Tick.objects.select_for_update(skip_locked=True)
        if not mine.filter(pk=tick_id, done_at=None, after_job__lt=due[0].job_id).exists():
            return None
        total = make_due_runs(due)
        try:
            total += send_due_hints(due)
        except BrokerUnavailable as error:
            failure = error
        else:
            crash_point("tick.after_publish")
            Tick.objects.filter(pk=tick_id).update(after_job=due[-1].job_id, sent_at=Now())
    if failure is not None:
        raise failure
    return total


def make_due_runs(due: Sequence[Due]) -> int:
    """Make the runs of due times whose jobs keep runs and let them overlap; return how many."""
    kept = sorted((it for it in due if it.history != HistoryPolicy.NONE), key=attrgetter("owner"))
    limited = [(it.job_id, it.slot) for it in kept if it.overlap != OverlapPolicy.ALLOW]
    free = [(it.job_id, it.slot) for it in kept if it.overlap == OverlapPolicy.ALLOW]
    with transaction.atomic():
        sql.bound_waits()
        # In the transaction that makes the runs: the next tick then finds them open.
        if limited:
            result = overlap.apply_overlap(limited)
            free += result.chosen
            # A job is triggered within a minute of its due time, whatever its shard.
            defer_locked((job_id, slot, slot + SLOTS) for job_id, slot in result.locked)
        return make_runs_apart(free)


def send_due_hints(due: Sequence[Due]) -> int:
    """Publish the hints of due times whose jobs keep no runs; return how many."""
    return publish_due_hints(it for it in due if it.history == HistoryPolicy.NONE)
