"""manage.py status: the overview in a terminal, and an exit status for monitors."""

import builtins
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from django.core.management import call_command

from jobs.core import sql
from jobs.models import Owner, Run, Worker
from tests.commands import python
from tests.jobs.management.conftest import press_ctrl_c
from tests.jobs.scenes import (
    admitted,
    keep_beating,
    living_worker,
    open_transaction,
    progressed,
    silence,
    submitted,
)


@pytest.fixture
def healthy(committed: None, broker: redis.Redis) -> Iterator[None]:
    """A beat, a worker of each queue, and a run of acme that waits."""
    [before] = sql.query("SELECT beat_at FROM jobs_cursor")
    keep_beating()
    living_worker("w1@here")
    living_worker("system@here", queues=["system"])
    submitted(Owner.objects.create(slug="acme"), 3)
    yield
    sql.query("UPDATE jobs_cursor SET beat_at = %s", [before["beat_at"]])


def told(capsys: pytest.CaptureFixture[str], *options: str, status: int) -> str:
    """Return the output of the command, which ends with this status."""
    try:
        call_command("status", *options)
        found = 0
    except SystemExit as end:
        found = int(str(end.code))
    text = capsys.readouterr()
    assert found == status, text.out + text.err
    return text.out


@pytest.mark.usefixtures("healthy")
def test_json_has_verdict_numbers_and_owners(capsys: pytest.CaptureFixture[str]) -> None:
    """One object; times in seconds."""
    facts = json.loads(told(capsys, "--json", status=0))
    [owner] = facts.pop("owners")
    assert facts.pop("at") and facts.pop("oldest_wait_seconds") >= 0
    assert facts == {
        "status": "healthy",
        "problems": [],
        "workers": 2,
        "slots": 4,
        "running": 0,
        "queued": 3,
        "held": 0,
        "retrying": 0,
        "failed_last_hour": None,
        "beat": "leads",
        "has_system_worker": True,
        "redis_answers": True,
        "progress": [],
    }
    assert owner.pop("oldest_wait_seconds") >= 0
    assert owner == {
        "owner": "acme",
        "running": 0,
        "backlog": 3,
        "held": 0,
        "failed_last_hour": None,
    }


@pytest.mark.usefixtures("healthy")
def test_what_needs_attention_is_degraded(capsys: pytest.CaptureFixture[str]) -> None:
    """With what to do about it."""
    living_worker("w2@here")
    silence(Worker.objects.get(hostname="w2@here").id, seconds=60)
    text = told(capsys, status=1)
    assert text.startswith(
        "Degraded: Worker w2@here was lost.\n- Worker w2@here was lost.\n    do: "
    )
    assert json.loads(told(capsys, "--json", status=1))["problems"][0]["code"] == "lost_worker"


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize("options", [[], ["--watch"]])
def test_progress_of_tasks_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    """Run, owner, task and progress, in each look; a terminal obeys nothing of a note."""
    press_ctrl_c(monkeypatch, at_pause=1)
    run = Run.objects.first()
    assert run is not None
    progressed(admitted(living_worker("w3@here"), run), 1, 4, "half\x1b[2J way")
    text = told(capsys, *options, status=0)
    shown = "25 % · 1 / 4 · half\\u001b[2J way"
    assert f"\n\nrun  owner  task  progress\n{run.id}  acme  tests.add  {shown}\n" in text
    facts = json.loads(told(capsys, *options, "--json", status=0))
    [one] = facts["progress"]
    assert one["progress"].pop("at") and one == {
        "run": str(run.id),
        "owner": "acme",
        "task": "tests.add",
        "progress": {"done": 1, "total": 4, "note": "half\x1b[2J way"},
    }


def test_a_database_that_is_away_is_unreadable() -> None:
    """The status is 3, and the reason is on the standard error."""
    away = {"DATABASE_URL": "postgresql://x@127.0.0.1:1/x", "SECRET_KEY": "x", "DEBUG": "1"}
    done = python("manage.py", "status", "--json", environ={**os.environ, **away})
    assert done.returncode == 3
    assert json.loads(done.stdout)["status"] == "unreadable"
    assert done.stderr.startswith("The status cannot be read: ") and "Traceback" not in done.stderr


@pytest.mark.usefixtures("healthy")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_watching_looks_again_until_ctrl_c(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: list[str]
) -> None:
    """Its end is no error, whatever it showed."""
    press_ctrl_c(monkeypatch, at_pause=3)
    text = told(capsys, "--watch", *form, status=0)
    assert text.count('"healthy"' if form else "Healthy: ") == 3


@pytest.mark.usefixtures("healthy")
def test_without_rich_it_is_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rich is an extra."""
    find = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "rich":
            raise ModuleNotFoundError(name)
        return find(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    press_ctrl_c(monkeypatch, at_pause=1)
    assert told(capsys, "--watch", status=0).startswith("Healthy: ")


@pytest.mark.usefixtures("healthy")
def test_a_look_that_is_late_is_unreadable(capsys: pytest.CaptureFixture[str]) -> None:
    """A lock makes it wait; it is not said that PostgreSQL does not answer."""
    with open_transaction("LOCK TABLE jobs_owner"):
        facts = json.loads(told(capsys, "--json", "--timeout", "2", status=3))
    assert facts["status"] == "unreadable"
    assert "PostgreSQL answers" in facts["reason"] and "--timeout" in facts["reason"]
