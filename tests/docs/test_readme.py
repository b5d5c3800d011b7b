"""README.md and the pages on submitting and the demo: commands, code and tables are right."""

import re
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from celery import current_app
from django.contrib.auth import get_user_model

from config.demo.verdict import UpgradeVerdict, Verdict
from jobs.catalog.policies import CHECKS
from jobs.catalog.registry import offer_of
from jobs.core.states import State
from jobs.models import Job, Opening, Owner, Run
from jobs.runs.options import NAMES
from tests.docs.pages import blocks, code_words, entries, pages, read

README = read("README.md")
SUBMITTING = read("docs/use/submitting.md")
DEMO = read("docs/start/demo.md")


def test_commands_are_run_by_ci() -> None:
    """Each command that a reader is told to type is a line of .ci/run, but for its ARGS."""
    ran = re.sub(r"^part | ARGS=\".*\"", "", read(".ci/run"), flags=re.MULTILINE).splitlines()
    typed = [line for block in blocks(README, info="sh") for line in block.text.splitlines()]
    assert typed != []
    assert [line for line in typed if line not in ran] == []


PYTHON = [block for path in pages() for block in blocks(path.read_text(), info="python")]


def test_code_is_python() -> None:
    """Every piece of Python, on any page, can be compiled."""
    for block in PYTHON:
        compile(block.text, block.info, "exec")


@pytest.fixture
def northwind(db: None) -> Iterator[Owner]:
    """The owner of the examples, whose tasks are forgotten afterwards."""
    yield Owner.objects.create(slug="northwind")
    for name in [name for name in current_app.tasks if name.startswith("readme.")]:
        current_app.tasks.pop(name)


def example(name: str) -> str:
    [found] = blocks(README, info=f"python {name}")
    return found.text


def played(code: str, **given: Any) -> dict[str, Any]:
    """Run code as a module of the reader's; return its names."""
    names = {"__name__": "readme", **given}
    exec(compile(code, "README.md", "exec"), names)
    return names


def test_first_example_stores_a_run_for_each_device(northwind: Owner) -> None:
    """The example at the top does what the sentence above it says."""
    devices = ["edge-1", "edge-2", "edge-3"]
    names = played(example("example"), publish_ruleset=lambda: 7, device_names=devices)
    assert offer_of(names["activate_ruleset"]).policy["max_attempts"] == 5
    runs = Run.objects.filter(submission__label="ruleset 7").order_by("id")
    assert [(run.state, run.target.name, run.arguments) for run in runs if run.target] == [
        (State.QUEUED, name, ([], {"device": name, "version": 7})) for name in devices
    ]


def test_the_start_submits_a_run_that_says_why_it_waits(northwind: Owner) -> None:
    """As its comments say; a worker would execute the task."""
    start = example("start")
    assert len(start.strip().splitlines()) <= 15
    names = played(start)
    run = names["run"]
    assert run.state == State.QUEUED and run.why_waiting() in start
    args, kwargs = run.arguments
    assert repr(names["greet"](*args, **kwargs)).replace("'", '"') in start


def test_recurring_example_makes_jobs_and_may_be_repeated(northwind: Owner) -> None:
    """Each job has the schedule that it names; the same call again changes nothing."""
    jobs = Job.objects.order_by("key")
    played(example("recurring"))
    kinds = list(jobs.values_list("key", "schedule"))
    assert kinds == [("clear-sessions", "cron"), ("health-edge-7", "interval")]
    # A trigger writes the time of every change.
    made = list(jobs.values_list("changed_at", flat=True))
    played(example("recurring"))
    assert list(jobs.values_list("changed_at", flat=True)) == made


def test_the_example_of_windows_opens_on_nights_of_the_weekend(northwind: Owner) -> None:
    """By the clock of its zone, and only after an approval."""
    get_user_model().objects.create(username="ada", is_superuser=True)
    asked, approved = example("windows").split("calendars.approve(window")
    names = played(asked)
    assert not Opening.objects.exists()
    played(f"calendars.approve(window{approved}", **names)
    zone = ZoneInfo("Europe/Berlin")
    begins = [opening.opens_at.astimezone(zone) for opening in Opening.objects.all()]
    # One that has begun a day ago or more is clipped.
    whole = begins[1:]
    assert whole
    assert {(moment.strftime("%a"), moment.hour) for moment in whole} == {("Sat", 22), ("Sun", 22)}


def test_options_are_those_of_a_submit() -> None:
    """The list of options names each option, and no other; the policies are all named."""
    listed = entries(SUBMITTING, after="## Options")
    assert sorted(code_words(name)[0] for name, _ in listed) == sorted(NAMES)
    sentence = SUBMITTING[SUBMITTING.index("A task declares its own policies") :].partition("\n\n")[
        0
    ]
    assert set(CHECKS) <= set(code_words(sentence))


def test_keys_of_the_verdict_are_those_of_the_demo() -> None:
    """The list of the demo's JSON names every key of its verdict."""
    keys = entries(DEMO, after="## The verdict as JSON")
    listed = [word for name, _ in keys for word in code_words(name)]
    fields = set(Verdict.__dataclass_fields__) | {"workers", "slots"}
    assert sorted(listed) == sorted(fields)
    [of_upgrade] = [meaning for name, meaning in keys if name == "`upgrade`"]
    assert sorted(code_words(of_upgrade)) == sorted(UpgradeVerdict.__dataclass_fields__)
