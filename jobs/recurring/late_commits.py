"""Late commits: jobs that were committed after a tick had passed their due times.

A tick cannot see a job whose transaction has not committed. So each round looks at the jobs that
became visible since the round before. It triggers what was due in slots whose tick did not see
them; due times in slots that were caught up with are judged as missed. A transaction may take
LATE_COMMIT_SECONDS: what was due longer ago is not triggered.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

from jobs.core import sql
from jobs.core.conf import setting
from jobs.models import Tick
from jobs.recurring.due import Due, due_rows, is_due
from jobs.recurring.pulse import Span, defer_locked
from jobs.recurring.tick import CHUNK, make_due_runs, send_due_hints
from jobs.schedules.phases import SLOTS


@sql.alone
def trigger_late_commits() -> int:
    """Trigger what ticks could not see; return how many.

    Raises BrokerUnavailable while hints of jobs without history cannot be published: the next call
    repeats the round, which makes no run twice.
    """
    found = sql.run("recurring/late_commit_snapshot", {})
    if not found:
        return 0
    [round_] = found
    total = 0
    if round_["any"]:
        given = _parameters(round_)
        defer_locked(
            _missed(due_rows("recurring/late_commit_due", {**given, "kind": Tick.Kind.CATCH_UP}))
        )
        total = _trigger(due_rows("recurring/late_commit_due", {**given, "kind": Tick.Kind.DUE}))
    if round_["any"] or round_["begins"]:
        # If no job has become visible, the next round may as well begin from the old snapshot.
        sql.query("UPDATE jobs_cursor SET again_seen = %s::pg_snapshot", [round_["seen"]])
    return total


def _parameters(round_: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of late_commit_due.sql, but for `kind`."""
    end = round_["slot"]
    first = end - 2 * round(setting("LATE_COMMIT_SECONDS"))
    snapshots = {"seen": round_["seen"], "before": round_["before"]}
    crons = [
        (row["cron"], row["zone"], minute)
        for row in sql.run("recurring/late_commit_crons", snapshots)
        for minute in range(first // SLOTS, (end - 1) // SLOTS + 1)
        if is_due(row["cron"], row["zone"], minute)
    ]
    span = {"first_slot": first, "end_slot": end}
    return {**snapshots, **span, **sql.columns(crons, "crons", "zones", "minutes")}


def _missed(due: list[Due]) -> Iterator[Span]:
    """Yield each job with the span of its due times, for its misfire policy to judge."""
    for job_id, its_own in groupby(due, key=attrgetter("job_id")):
        slots = [each.slot for each in its_own]
        yield job_id, min(slots), max(slots) + SLOTS


def _trigger(due: list[Due]) -> int:
    # Rows first: they can be made while the broker is away.
    total = sum(make_due_runs(due[at : at + CHUNK]) for at in range(0, len(due), CHUNK))
    return total + sum(send_due_hints(due[at : at + CHUNK]) for at in range(0, len(due), CHUNK))
