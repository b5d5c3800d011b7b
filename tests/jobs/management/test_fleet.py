"""manage.py fleet owners: whose work waits, runs and has been done, for people and programs."""

import json
from io import StringIO

import pytest
import redis
from django.core.management import CommandError, call_command
from pytest_django import Settings
from rich.console import Console

from fleet import OwnerSettings
from jobs.management.owner_table import as_table
from jobs.runs import dispatch
from tests.fleet.fair_queues import Queue
from tests.jobs.management.conftest import Printed, press_ctrl_c
from tests.jobs.scenes import hang


@pytest.fixture
def queue(broker: redis.Redis) -> Queue:
    """Acme has 10 s of work done, one at work and two that wait; northwind is paused."""
    queue = Queue(broker)
    queue.put("acme", "a1", "a2", "a3", "a4")
    queue.put("northwind", "n1")
    settings = [
        OwnerSettings("acme", weight=3, max_running=5),
        OwnerSettings("northwind", is_paused=True),
    ]
    dispatch.owners().set(settings, timeout=5)
    queue.finish(*queue.take(), seconds=10)
    queue.take()
    return queue


OWNERS = "fleet owners --seconds 0.1"


def test_json_has_every_owner(queue: Queue, printed: Printed) -> None:
    """One object, busiest owner first; times in seconds, shares as parts of 1."""
    snapshot = json.loads(printed(OWNERS, "--json"))
    acme, northwind = snapshot["owners"]
    assert acme.pop("oldest_wait_seconds") >= 0.1
    assert acme == {
        "owner": "acme",
        "weight": 3,
        "backlog": 2,
        "running": 1,
        "max_running": 5,
        "worker_seconds": 10,
        "entitled": 1,
        "received": 0,
        "state": "eligible",
    }
    assert (northwind["state"], northwind["backlog"], northwind["entitled"]) == ("paused", 1, 0)


LONG = "the-department-with-the-longest-name-of-them-all"
FIGURES = ["weight", "backlog", "leased", "oldest", "worker s", "entitled", "received", "state"]


def test_a_pipe_has_names_as_they_are(queue: Queue, printed: Printed) -> None:
    """A line an owner and no frame, for `grep` and `awk`; the last line ends."""
    queue.put(LONG, "l1")
    text = printed(OWNERS)
    heading, *owners = text.splitlines()
    assert heading.split() == ["owner", *" ".join(FIGURES).split()]
    assert {line.split()[0] for line in owners} == {"acme", "northwind", LONG}
    assert text.endswith("\n")


def test_80_columns_cut_names_and_no_figures(queue: Queue) -> None:
    """On a terminal a long name gives way; headings, figures and states are whole."""
    queue.put(LONG, "l1")
    snapshot = dispatch.owners().snapshot(timeout=5)
    console = Console(file=StringIO(), width=80)
    console.print(as_table(snapshot, since=snapshot, most=50))
    assert isinstance(console.file, StringIO)
    heading, *owners = console.file.getvalue().splitlines()
    assert len(owners) == 3
    assert all(name in heading for name in FIGURES)
    assert all(line.split()[-1] in {"eligible", "paused"} for line in owners)
    assert any(line.startswith("the-depart") and "…" in line for line in owners)


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_name_that_nobody_has_is_said(queue: Queue, form: list[str]) -> None:
    """With exit status 1, and no table that is empty."""
    with pytest.raises(CommandError, match="Nobody named nosuch is known") as caught:
        call_command(*OWNERS.split(), *form, "acme", "nosuch")
    assert caught.value.returncode == 1


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_watching_looks_again(
    queue: Queue,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    form: list[str],
) -> None:
    """Until Ctrl-C, which is no error; into a pipe each look is written at once."""
    press_ctrl_c(monkeypatch, at_pause=4)
    with pytest.raises(SystemExit) as ended:
        call_command(*OWNERS.split(), *form, "--watch", "acme")
    assert ended.value.code == 0
    looks = [line for line in capsys.readouterr().out.splitlines() if "acme" in line]
    assert len(looks) == 3


def test_a_broker_that_is_away_is_named(queue: Queue, settings: Settings) -> None:
    """With exit status 1."""
    hang(queue.client, settings)
    with pytest.raises(CommandError, match="broker does not answer") as caught:
        call_command("fleet", "owners")
    assert caught.value.returncode == 1
    dispatch.broker.cache_clear()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("", r"PART|owners"),
        ("ownres", "owners"),
        ("owners --seconds 0", "--seconds"),
        ("owners --most 0", "--most"),
    ],
)
def test_what_cannot_be_asked_is_refused(words: str, problem: str) -> None:
    """By the name of the option, or with the parts that there are."""
    with pytest.raises(CommandError, match=problem):
        call_command("fleet", *words.split())
