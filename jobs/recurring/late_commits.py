"""Late commits: jobs that were written while the slots of their due times passed.

A tick cannot see a job whose transaction has not committed. So each round looks at the jobs that
have become visible since the round before, and triggers what was due in slots whose tick did not
see them; what was caught up with before is judged as missed. A transaction may take
LATE_COMMIT_SECONDS; what a longer one makes due at its beginning is missed.
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

    Raises BrokerUnavailable while hints of jobs without history cannot be published: the round is
    then done again, and what it has made is made once.
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
    sql.query("UPDATE jobs_cursor SET again_seen = %s::pg_snapshot", [round_["seen"]])
    return total


def _parameters(round_: dict[str, Any]) -> dict[str, Any]:
    """Return what finds due times of changed jobs in slots whose tick did not see the change."""
    end = round_["slot"]
    first = end - 2 * round(setting("LATE_COMMIT_SECONDS"))
    of_round = {"seen": round_["seen"], "before": round_["before"]}
    crons, zones, minutes = [], [], []
    for row in sql.run("recurring/late_commit_crons", of_round):
        for minute in range(first // SLOTS, (end - 1) // SLOTS + 1):
            if is_due(row["cron"], row["zone"], minute):
                crons.append(row["cron"])
                zones.append(row["zone"])
                minutes.append(minute)
    span = {"first_slot": first, "end_slot": end}
    matched = {"crons": crons, "zones": zones, "minutes": minutes}
    return {**of_round, **span, **matched}


def _missed(due: list[Due]) -> Iterator[Span]:
    """Yield each job with the slots in which it was not caught up with: its policy judges those."""
    for job_id, its_own in groupby(due, key=attrgetter("job_id")):
        slots = [each.slot for each in its_own]
        yield job_id, min(slots), max(slots) + SLOTS


def _trigger(due: list[Due]) -> int:
    # Rows first: they do not wait for a broker that is away.
    total = sum(make_due_runs(due[at : at + CHUNK]) for at in range(0, len(due), CHUNK))
    return total + sum(send_due_hints(due[at : at + CHUNK]) for at in range(0, len(due), CHUNK))
