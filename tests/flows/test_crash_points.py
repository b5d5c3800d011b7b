"""Every crash point between two I/O steps: real processes end there, and the judge looks."""

import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from fleet.crash_points import KNOWN
from jobs.core.states import State
from jobs.management.stack.programs import beat, job_worker, system_worker
from jobs.models import Outbox, Run
from jobs.system.sweep import CHUNK
from tests.flows.conftest import make_owner
from tests.flows.kept import drained, kept
from tests.flows.processes import Processes
from tests.flows.submitters import Submitter
from tests.judge import Verdict

SUBMIT_POINTS = [name for name in KNOWN if name.startswith("submit.")]
DISPATCH_POINTS = [name for name in KNOWN if name.startswith("dispatch.")]
# The first submit is alone, and commits with its statement; the second is in a caller's block, the
# fourth will be rolled back.
SUBMITTER_FAULTS = [
    *(f"{name}:{number}" for name in SUBMIT_POINTS for number in (1, 2, 4)),
    *(f"{name}:{number}" for name in DISPATCH_POINTS for number in (1, 2)),
]
WORKER_FAULTS = [
    "gate.before_admit:3",
    "gate.after_admit:2",
    "gate.before_pool:4",
    "child.before_run:2",
    "child.after_run:3",
    "ledger.before_record:2",
    "ledger.after_record:3",
    "ledger.after_ack:5",
    "promotion.after_move:1",
    "rescue.after_move:1",
    "sweep.after_publish:2",
]
ROUNDS = 20
PASSES = 8

Judge = Callable[..., Verdict]


def test_a_submitter_may_end_anywhere(stack: Processes, verdict: Judge) -> None:
    """Committed runs end, though they were not published; uncommitted ones never exist."""
    make_owner("globex")
    _end_submitters(stack, SUBMITTER_FAULTS)
    held = Submitter(stack, "--hold-at", "2", prefix="held")
    held.until("open")
    held.kill()
    drained()
    verdict()
    for fault in SUBMITTER_FAULTS:
        name, _, number = fault.partition(":")
        ended_at = int(number) if name in DISPATCH_POINTS else 2 * int(number)
        last = Run.objects.filter(labels={"judge_key": f"{fault}-{ended_at}"})
        assert last.exists() == (name in DISPATCH_POINTS), fault
    assert not Run.objects.filter(labels={"judge_key": "held-2"}).exists()


def test_workers_may_end_anywhere(processes: Processes, verdict: Judge, tmp_path: Path) -> None:
    """Each point of a worker and of the system's worker is met once; all runs end well."""
    make_owner("globex")
    _end_workers(processes, WORKER_FAULTS, submits=50, once=tmp_path / "once")
    verdict()
    assert not Run.objects.exclude(state=State.SUCCEEDED).exists()


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(1, ROUNDS + 1))
def test_a_submitter_may_end_at_every_pass(stack: Processes, verdict: Judge, number: int) -> None:
    """The n-th pass of each of its points."""
    make_owner("globex")
    points = [*SUBMIT_POINTS, *DISPATCH_POINTS]
    _end_submitters(stack, [f"{name}:{number}" for name in points], "--count", "100")
    drained()
    verdict()


@pytest.mark.chaos
@pytest.mark.parametrize("number", range(1, ROUNDS + 1))
def test_workers_may_end_at_any_pass(
    processes: Processes, verdict: Judge, tmp_path: Path, number: int
) -> None:
    """A random pass of each of their points, by a seed."""
    make_owner("globex")
    seed = int(os.environ.get("SEED") or secrets.randbelow(10**6)) + number
    print(f"SEED={seed - number} number={number}")
    random = Random(seed)
    points = [fault.partition(":")[0] for fault in WORKER_FAULTS]
    # Rescue and promotion have as many passes as workers were lost; the others have many.
    faults = [
        f"{name}:{1 if name.startswith(('rescue.', 'promotion.')) else random.randint(1, PASSES)}"
        for name in points
    ]
    _end_workers(processes, faults, submits=120, once=tmp_path / "once")
    verdict()
    assert not Run.objects.exclude(state=State.SUCCEEDED).exists()


def _end_submitters(stack: Processes, faults: Sequence[str], *options: str) -> None:
    """Let a submitter end at each of these faults."""
    Submitter(stack, *options, "--end-at", *faults, prefix="ending").waits(seconds=120)


def _end_workers(scene: Processes, faults: Sequence[str], *, submits: int, once: Path) -> None:
    """Let processes end at each of these faults, once, and be started again until all is done."""
    once.mkdir()
    # What these leave in the outbox is for the sweep.
    _end_submitters(scene, ["dispatch.after_commit:1", "dispatch.before_publish:1"])
    _list_again()
    programs = [job_worker("one", slots=2), job_worker("two", slots=2), system_worker(), beat()]
    with kept(scene, *programs, FAULT=",".join(faults), FAULT_ONCE_DIR=str(once)) as stack:
        steady = Submitter(scene, "--count", str(submits), "--seconds", "0.05", prefix="steady")
        steady.waits()
        drained(stack, seconds=120)
    assert {marker.name for marker in once.iterdir()} == set(faults)


def _list_again() -> None:
    """Have the outbox list what is left so often that one sweep passes its point at any number.

    As if as many submitters had ended between their publish and the outbox. Each batch is large
    enough for a transaction of its own.
    """
    left = list(Run.objects.values_list("id", flat=True))
    batch = left * (CHUNK // len(left) + 1)
    Outbox.objects.bulk_create(Outbox(run_ids=batch) for _ in range(PASSES))
