"""Every crash point between two I/O steps: real processes end there, and the judge looks."""

import signal

from fleet.faults import KNOWN
from fleet.programs import beat, job_worker, system_worker
from jobs.models import Run
from jobs.states import State
from tests.flows.conftest import make_owner
from tests.flows.kept import drained, kept
from tests.flows.submitters import Submitter

# The first submit is alone, the second in a caller's block, the fourth will be rolled back.
SUBMITTER_FAULTS = [
    *(f"{name}:{number}" for name in KNOWN if name.startswith("submit.") for number in (1, 2, 4)),
    *(f"{name}:{number}" for name in KNOWN if name.startswith("dispatch.") for number in (1, 2)),
]
AT_ONCE = 3
WORKER_FAULTS = [
    ("gate.before_admit", 3),
    ("gate.after_admit", 5),
    ("gate.before_pool", 4),
    ("child.before_run", 2),
    ("child.after_run", 3),
    ("ledger.before_record", 4),
    ("ledger.after_record", 6),
    ("ledger.after_ack", 5),
    ("promotion.after_move", 1),
    ("rescue.after_move", 1),
    ("sweep.after_publish", 2),
]


def test_a_submitter_may_end_anywhere(stack, owner, verdict) -> None:
    """What it had committed ends, though nobody published it; what it had not never exists."""
    make_owner("globex")
    for start in range(0, len(SUBMITTER_FAULTS), AT_ONCE):
        faults = SUBMITTER_FAULTS[start : start + AT_ONCE]
        dying = [Submitter(stack, prefix=fault, FAULT=fault) for fault in faults]
        assert [process.wait() for process in dying] == [-signal.SIGKILL] * len(dying)
    held = Submitter(stack, "--hold-at", "2", prefix="held")
    held.until("open")
    held.kill()
    drained()
    verdict()
    for fault in SUBMITTER_FAULTS:
        name, _, number = fault.partition(":")
        last = Run.objects.filter(labels={"judge_key": f"{fault}-{number}"})
        assert last.exists() == name.startswith("dispatch."), fault
    assert not Run.objects.filter(labels={"judge_key": "held-2"}).exists()


def test_workers_may_end_anywhere(processes, owner, verdict, tmp_path) -> None:
    """Each point of a worker and of the system's worker is met once; all runs end well."""
    make_owner("globex")
    once = tmp_path / "fired"
    once.mkdir()
    faults = [f"{name}:{number}" for name, number in WORKER_FAULTS]
    # Its outbox is left to the sweep, and its runs to promotion, once a worker was lost.
    for name in ("dispatch.after_commit", "dispatch.before_publish"):
        assert Submitter(processes, prefix=name, FAULT=f"{name}:1").wait() == -signal.SIGKILL
    programs = [job_worker("one", slots=2), job_worker("two", slots=2), system_worker(), beat()]
    with kept(processes, *programs, FAULT=",".join(faults), FAULT_ONCE_DIR=str(once)) as stack:
        submits = Submitter(processes, "--count", "40", "--seconds", "0.05", prefix="steady")
        submits.waits()
        drained(stack, seconds=90)
    assert {marker.name for marker in once.iterdir()} == set(faults)
    figures = verdict().figures
    assert not Run.objects.exclude(state=State.SUCCEEDED).exists(), figures
    print(figures)
