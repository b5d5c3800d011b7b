"""What scenes of rollups are made of: outcomes of past minutes, rounds, a plain count of rows."""

import random
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from fleet import Kind
from jobs.core import sql
from jobs.core.states import State
from jobs.models import Attempt, Owner, Rollup, Run
from jobs.runs.recording import move, record
from jobs.system.rollups.rolling import roll_up
from tests.jobs.scenes import admitted, living_worker, submitted, told

MINUTE: Final = timedelta(minutes=1)
ERRORS: Final = ("OSError", "ValueError")
UNSTARTED: Final = (State.CANCELLED, State.EXPIRED, State.FAILED)
Key = tuple[datetime, int, str, str, str]


def minutes_ago(count: int) -> datetime:
    """Return the start of a minute, so many before the running one."""
    [row] = sql.query("SELECT date_trunc('minute', clock_timestamp()) AS at")
    return row["at"] - count * MINUTE


def ended(owner: Owner, at: datetime, kind: Kind = Kind.SUCCEEDED, **facts: Any) -> Run:
    """Return a run of which an attempt ended, and was recorded, at that moment."""
    [run] = submitted(owner)
    record([told(admitted(living_worker(), run), kind, **facts)])
    recorded_at(run, at)
    run.refresh_from_db()
    return run


def recorded_at(run: Run, at: datetime) -> None:
    """Let a run's newest attempt have been recorded at that moment."""
    sql.query(
        "UPDATE jobs_attempt SET recorded_at = %s WHERE (run_id, token) = "
        "(SELECT run_id, max(token) FROM jobs_attempt WHERE run_id = %s GROUP BY run_id)",
        [at, run.id],
    )


def moved(owner: Owner, at: datetime, to: State) -> Run:
    """Return a run that ended at that moment without an attempt."""
    [run] = submitted(owner)
    move([run.id], to=to)
    sql.query("UPDATE jobs_run SET ended_at = %s WHERE id = %s", [at, run.id])
    return run


def rolled_up() -> None:
    """Run rounds until all minutes before this one are counted, with no transaction open."""
    for _ in range(3):
        roll_up()


def history(owners: Sequence[Owner], chance: random.Random, *, count: int) -> None:
    """Make runs of past minutes with every outcome, some of them tried twice."""
    worker = living_worker()
    for _ in range(count):
        owner = chance.choice(owners)
        at = minutes_ago(chance.randint(2, 6)) + timedelta(seconds=chance.uniform(0, 59.9))
        if chance.random() < 0.2:
            moved(owner, at, chance.choice(UNSTARTED))
            continue
        [run] = submitted(owner)
        sql.query(
            "UPDATE jobs_run SET task = %s WHERE id = %s", [f"t{chance.randint(1, 2)}", run.id]
        )
        run.refresh_from_db()
        waited = timedelta(seconds=chance.expovariate(1 / 20))
        sql.query("UPDATE jobs_run SET queued_at = queued_at - %s WHERE id = %s", [waited, run.id])
        if chance.random() < 0.2:
            _attempt(worker, run, Kind.RETRYING, at - MINUTE, chance)
            move([run.id], to=State.QUEUED)
        kinds = [Kind.SUCCEEDED] * 4 + [Kind.FAILED, Kind.RETRYING, Kind.GIVEN_BACK]
        _attempt(worker, run, chance.choice(kinds), at, chance)


def _attempt(worker: Any, run: Run, kind: Kind, at: datetime, chance: random.Random) -> None:
    admission = admitted(worker, run)
    facts: dict[str, Any] = {}
    if kind is not Kind.GIVEN_BACK:
        # The end is clipped to the admission, so put that back, too.
        seconds = chance.expovariate(1 / 3)
        sql.query(
            'UPDATE jobs_run SET history = \'[["queued", 0, ""]]\', admitted_at = admitted_at - '
            "make_interval(secs => %s) WHERE id = %s",
            [seconds, run.id],
        )
        facts["started_at"] = time.monotonic() - seconds
    if kind in (Kind.FAILED, Kind.RETRYING):
        facts |= {"error_type": chance.choice(ERRORS), "delay": 0.0}
    record([told(admission, kind, **facts)])
    recorded_at(run, at)


def plain_count() -> Counter[Key]:
    """Count all rows that the rollups count, one by one."""
    runs = {run.id: run for run in Run.objects.all()}
    found: Counter[Key] = Counter()
    ends = set()
    for attempt in Attempt.objects.exclude(outcome="given back"):
        run = runs[attempt.run_id]
        failed = attempt.outcome in ("failed", "retrying")
        error = attempt.error_type if failed else ""
        ends.add((run.id, attempt.ended_at))
        found[_minute(attempt.recorded_at), run.owner_id, run.task, attempt.outcome, error] += 1
    for run in runs.values():
        if run.ended_at is not None and (run.id, run.ended_at) not in ends:
            found[_minute(run.ended_at), run.owner_id, run.task, run.state, ""] += 1
    return found


def rolled_count() -> Counter[Key]:
    """Return the counts of all rollups."""
    return Counter(
        {(r.minute, r.owner_id, r.task, r.outcome, r.error_type): r.count for r in _rollups()}
    )


def rows() -> list[dict[str, Any]]:
    """Return all rollups, in the order of their keys."""
    return sql.query(
        "SELECT * FROM jobs_rollup ORDER BY minute, owner_id, task, outcome, error_type"
    )


def totals() -> list[dict[str, Any]]:
    """Return the totals of all minutes, in their order."""
    return sql.query("SELECT * FROM jobs_rolluptotal ORDER BY minute")


def _rollups() -> list[Rollup]:
    return list(Rollup.objects.all())


def _minute(moment: Any) -> datetime:
    return moment.replace(second=0, microsecond=0)
