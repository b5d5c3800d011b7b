"""Beat and workers whose clocks are wrong: what is due is done all the same (G19)."""

import json
import re
from collections.abc import Callable
from contextlib import suppress

import pytest
from django.core.management import call_command

from jobs import submit
from jobs.core.states import State
from jobs.models import Owner, Run
from tests.contrast.installation import FAKING
from tests.flows.processes import Processes
from tests.flows.recurring import due_soon, ids_of, starts
from tests.flows.world import bodies, ended, outcomes, publishing_to
from tests.judge import Verdict
from tests.waiting import wait_for

NOWHERE = "redis+socket:///nowhere/redis.sock"


@pytest.mark.proof
@pytest.mark.smoke
def test_beat_is_behind_and_the_workers_are_ahead(
    processes: Processes,
    owner: Owner,
    verdict: Callable[..., Verdict],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By 90 s and 300 s. Promotion, sweep and rescue do their work, each due time has its run.

    `status` names beat's machine.
    """
    dying = processes.start_worker("dying", 1)
    dying.ready()
    lost = submit("tests.record", owner=owner, n=1, seconds=5)
    wait_for(lambda: bodies(processes.tasks, lost), what="its start")
    dying.kill()
    processes.start_beat(**FAKING, FAKETIME="-90s")
    processes.start_system(**FAKING, FAKETIME="+300s")
    processes.start_worker("ahead", 2, **FAKING, FAKETIME="+300s")
    processes.ready()
    later = submit("tests.add", owner=owner, countdown=1, x=1, y=1)
    with publishing_to(NOWHERE, monkeypatch):
        unpublished = submit("tests.add", owner=owner, x=1, y=1)
    due = due_soon(owner, seconds=3, count=8, history="full")
    for run in (later, unpublished, lost):
        assert ended(run, seconds=10).state == State.SUCCEEDED
    assert outcomes(lost) == ["worker lost", "succeeded"]
    wait_for(lambda: set(starts(processes.tasks)) >= set(ids_of(due)), what="every due time")
    runs = [ended(run) for run in Run.objects.filter(job__in=due)]
    assert sorted(str(run.id) for run in runs) == sorted(ids_of(due))
    verdict(lost, later, unpublished, *runs)
    clock = wait_for(lambda: _problems(capsys).get("clock"), what="beat's clock to be compared")
    assert re.search(r" differs from PostgreSQL's by -(89|90|91) s", clock)


def _problems(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Return what `status` finds, by code."""
    with suppress(SystemExit):
        call_command("status", "--json")
    return {one["code"]: one["text"] for one in json.loads(capsys.readouterr().out)["problems"]}
