"""jobs/system/verdict/rules.py: what is wrong, the worst first, and what to do about it."""

from collections.abc import Collection
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fleet import OwnerSnapshot
from jobs.calendars.reads.awaited import Awaited
from jobs.models import Calendar, Job, Owner, Rollout, Submission, Window
from jobs.owners.standing import Standing
from jobs.pages.overview.page import PERMISSIONS
from jobs.system.pinning import Pin
from jobs.system.rollups.objectives import SPANS, Counted, Objective
from jobs.system.state import SystemState
from jobs.system.verdict.facts import Facts
from jobs.system.verdict.rules import problems_of

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
SYSTEM = SystemState(
    at=NOW,
    is_beat_leading=True,
    pulsed_at=NOW - timedelta(seconds=9),
    worker_count=2,
    slots=8,
    queues=frozenset({"jobs", "system"}),
)
WELL = Facts(system=SYSTEM, system_queue="system")
ACME = Owner(pk=7, slug="acme")


def system(**changes: Any) -> dict[str, Any]:
    """Return the facts of an installation that differs in this."""
    return {"system": replace(SYSTEM, **changes)}


def pinned(kind: str, **facts: Any) -> dict[str, Any]:
    """Return the facts of an installation in which this pins dead rows."""
    return system(pins={kind: Pin(name="psql", username="ann", transactions=2_000_000, **facts)})


def waiting(**limits: Any) -> Standing:
    """Return acme with a run that has waited for six minutes, under these limits."""
    settings = {"weight": 1, "max_running": None, "is_paused": False, "rate": None}
    work = {"backlog": 12, "running": 2, "finished_count": 0, "worker_seconds": 0}
    waits = {"is_eligible": True, "oldest_wait_seconds": 370, "rest_seconds": None}
    facts: dict[str, Any] = {**settings, **work, **waits, **limits}
    seen = OwnerSnapshot(name="acme", **facts)
    return Standing(owner=ACME, seen=seen, entitled=0.5, received=0.1)


def late(spans: Collection[int]) -> Objective:
    """Return an objective of acme of which 80 % of the starts of these spans were late."""
    counted = {span: Counted(100, 80.0) for span in spans}
    return Objective(owner=ACME, seconds=30, percent=95, counted=counted)


SILENT = {"pulsed_at": NOW - timedelta(minutes=2)}
WINDOW = Window(pk=3, calendar=Calendar(name="nights"))
JOB = Job(pk=5, key="sync", owner=ACME, task="shop.sync")
ROLLOUT = Rollout(submission=Submission(pk=7, label="firmware"), wave=2, state="stopped")
WAITING = Rollout(submission=Submission(pk=7, label="firmware"), wave=1, state="waiting")
CAUSES: list[tuple[str, dict[str, Any], str]] = [
    ("redis", {"is_redis_away": True}, "Redis does not answer"),
    (
        "redis_password",
        {"is_redis_away": True, "refuses_password": True},
        "Redis refuses the password",
    ),
    ("beat", system(is_beat_leading=False, **SILENT), "Beat is silent"),
    ("beat", system(is_beat_leading=False, pulsed_at=None), "Beat is silent"),
    ("without_redis", system(without_redis=("w1@here",)), "1 worker cannot use Redis"),
    ("without_redis", system(without_redis=("a", "b", "c", "d")), "take no runs (a, b, c, …)."),
    ("without_redis", system(without_redis=("", "")), "2 workers cannot use Redis, and"),
    ("no_worker", system(worker_count=0, queues=frozenset()), "No worker is alive"),
    ("system_worker", system(queues=frozenset({"jobs"})), "No worker takes from queue system"),
    ("unserved", {"unserved": ["gpu", "mail"]}, "queue gpu, mail"),
    ("unserved_stock", {"unserved_stock": ["reports"]}, "Messages wait in queue reports, and no"),
    ("undeclared", {"undeclared": ["reports"]}, "Tasks are routed to queue reports, which no"),
    ("unsent", {"unsent": "notices"}, "no worker takes from queue notices"),
    ("missing_rounds", system(missing_rounds=("fairshift: pulse",)), "not send fairshift: pulse"),
    ("stopped", {"stopped": ["ci", "ops"]}, "may not see runs now: ci, ops"),
    ("pulse", system(**SILENT), "the pulse is missing"),
    ("late", {"late_count": 1}, "1 job was due"),
    ("late", {"late_count": 2}, "2 jobs were due"),
    ("unpublished", system(unpublished_since=NOW - timedelta(minutes=2)), "to be published"),
    ("unknown_task", {"unknown_task": ("shop.gone", "jobs")}, "knows task shop.gone"),
    ("failing", {"failing": [JOB]}, "Job sync of acme has failed"),
    ("failing", {"failing": [JOB, JOB, JOB]}, "Job sync of acme and 2 others"),
    ("broken", {"broken_count": 3}, "3 jobs have a schedule"),
    ("approval", {"awaited": Awaited(WINDOW, 4)}, "calendar nights is not approved, and 4 runs"),
    ("rollout_stopped", {"rollouts": [ROLLOUT]}, "firmware is stopped: too many runs"),
    ("rollout_stopped", {"rollouts": [ROLLOUT, ROLLOUT]}, "2 rollouts are stopped"),
    ("rollout_waits", {"rollouts": [WAITING]}, "firmware waits: wave 2 needs an approval"),
    ("rollout_waits", {"rollouts": [WAITING, WAITING]}, "2 rollouts need an approval"),
    ("starved_paused", {"starved": waiting(is_paused=True)}, "acme is paused"),
    ("starved_at_cap", {"starved": waiting(max_running=2)}, "at its cap of 2"),
    ("starved_resting", {"starved": waiting(rest_seconds=3.0)}, "used its rate"),
    ("starved_eligible", {"starved": waiting()}, "less than half of its share"),
    ("objective_burns_fast", {"burning": late(SPANS)}, "Owner acme misses its objective: 80 %"),
    ("objective_burns_slow", {"burning": late({360, 30})}, "of the starts of 6h were late"),
    ("statistics", system(counted_until=NOW - timedelta(minutes=9)), "are 8 min behind"),
    ("old_transaction", pinned("transaction", pid=7, seconds=3_000), "PostgreSQL is 50 min old"),
    ("old_transaction", pinned("transaction", pid=7), "process 7 (application psql, user ann)"),
    ("old_transaction", pinned("transaction", pid=7), "is 2,000,000 transactions old"),
    ("prepared_transaction", pinned("prepared", seconds=3_000), "'psql' of user ann is 50 min old"),
    ("replication_slot", pinned("slot", bytes=6 * 2**30), "'psql' is behind: PostgreSQL keeps 6.0"),
    ("lost_worker", system(lost=("w1@here",)), "Worker w1@here was lost"),
    (
        "clock",
        system(beat_host="m1", beat_ahead_seconds=90.2),
        "m1 differs from PostgreSQL's by +90 s",
    ),
    ("clock", system(beat_host="m1", beat_ahead_seconds=-300.0), "by -300 s"),
]
NO_PAGE = ("old_transaction", "prepared_transaction", "replication_slot", "undeclared")
"""Causes outside of what our pages show."""
CODES = {code for code, _facts, _words in CAUSES}


@pytest.mark.parametrize(("code", "facts", "words"), CAUSES)
def test_each_cause_is_named_with_what_to_do(code: str, facts: dict[str, Any], words: str) -> None:
    """And it is the only one that is named."""
    [problem] = problems_of(replace(WELL, **facts))
    assert problem.code == code and words in problem.text
    assert problem.todo and "%(" not in problem.text + problem.todo
    assert problem.page in (*PERMISSIONS, *([""] if code in NO_PAGE else [])), "it leads nowhere"


def test_every_fact_is_a_cause() -> None:
    """Of a problem in one of these scenes; only the name of the system's queue is not."""
    changed = {name for _code, facts, _words in CAUSES for name in facts}
    assert changed == {fact.name for fact in fields(Facts)} - {"system_queue"}


@pytest.mark.parametrize(
    "facts",
    [
        {},
        # Another scheduler than ours may send the pulse.
        system(is_beat_leading=False),
        system(pulsed_at=NOW - timedelta(seconds=29)),
        system(unpublished_since=NOW - timedelta(seconds=59)),
        # The minute that ended two minutes ago may be counted at any moment.
        system(counted_until=NOW - timedelta(minutes=3)),
        system(beat_ahead_seconds=-1.9),
    ],
)
def test_nothing_is_wrong(facts: dict[str, Any]) -> None:
    assert problems_of(replace(WELL, **facts)) == []


def test_a_cause_stands_before_its_effects_and_warnings_are_last() -> None:
    """With everything broken, the verdict is what must be mended first."""
    everything = replace(
        WELL,
        **system(is_beat_leading=False, lost=("w1@here",), **SILENT),
        is_redis_away=True,
        late_count=4,
        awaited=Awaited(WINDOW, 4),
        failing=[JOB],
    )
    found = problems_of(everything)
    codes = [problem.code for problem in found]
    assert codes == ["redis", "beat", "late", "failing", "approval", "lost_worker"]
    assert [problem.is_bad for problem in found] == [True] * 4 + [False] * 2


NONE_LIVES: dict[str, Any] = {"worker_count": 0, "queues": frozenset()}
CUT_OFF: dict[str, Any] = {"without_redis": ("w1@here",)}


@pytest.mark.parametrize(
    ("facts", "codes"),
    [
        # One cause, one line: without any worker, its queues are not named too.
        (system(**NONE_LIVES) | {"unserved": ["jobs"]}, [("no_worker", True)]),
        (system(**CUT_OFF), [("without_redis", False)]),
        (system(**CUT_OFF) | {"unserved": ["jobs"]}, [("without_redis", True), ("unserved", True)]),
        (system(**CUT_OFF, **NONE_LIVES), [("without_redis", True)]),
        # It is away from all: that is the cause.
        (system(**CUT_OFF, **NONE_LIVES) | {"is_redis_away": True}, [("redis", True)]),
    ],
)
def test_workers_that_redis_does_not_answer(
    facts: dict[str, Any], codes: list[tuple[str, bool]]
) -> None:
    """A warning while others take their runs. They are alive, so nothing says that none is."""
    found = problems_of(replace(WELL, **facts))
    assert [(one.code, one.is_bad) for one in found] == codes
