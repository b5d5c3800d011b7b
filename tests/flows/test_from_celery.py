"""docs/start/from-celery.md: its code and commands work in the project of own-project.md."""

import json
import re
import shlex
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from jobs.catalog.registry import REPLACED
from tests.commands import ran
from tests.docs import pages
from tests.docs.pages import PROJECT, code_words, read, table
from tests.flows.test_own_project import BEAT, SYSTEM, WORKER, Shop, servers, shop
from tests.waiting import wait_for

__all__ = ["servers", "shop"]

pytestmark = pytest.mark.proof

PAGE = read("docs/start/from-celery.md")
block = partial(pages.block, PAGE)

ENTRIES = """
from django_celery_beat.models import IntervalSchedule, PeriodicTask, SolarSchedule
from jobs.models import Owner
Owner.objects.get_or_create(slug="northwind")
every, _ = IntervalSchedule.objects.get_or_create(every=5, period="minutes")
sun = SolarSchedule.objects.create(event="sunset", latitude=1, longitude=1)
def entry(name, **fields):
    given = {"task": "shop.tasks.add", "args": "[1, 2]", "interval": every, **fields}
    PeriodicTask.objects.create(name=name, **given)
entry("nightly", priority=3)
entry("per tenant", exchange="tenants")
entry("sunset", interval=None, solar=sun)
entry("weekly", enabled=False)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages alone; test_own_project.py has them installed by pip."""
    folder = tmp_path_factory.mktemp("packages")
    for name in ("fleet", "jobs"):
        (folder / name).symlink_to(PROJECT / name)
    return folder


@pytest.fixture(scope="module")
def moved(shop: Shop) -> Shop:
    """The project, with the app and the tasks of the page."""
    (shop.folder / "shop/__init__.py").write_text(block("wiring"))
    with (shop.folder / "shop/tasks.py").open("a") as tasks:
        tasks.write(block("plain") + block("moved"))
    return shop


@pytest.fixture(scope="module")
def working(moved: Shop) -> Iterator[Shop]:
    """The same with the workers of own-project.md, and the one that drains the old queue."""
    with moved.running(WORKER, SYSTEM, BEAT, block("drain", language="sh").strip()):
        yield moved


def test_plain_tasks_answer_as_the_page_says(working: Shop) -> None:
    """`ignore_result` decides, and not the worker that ran it."""
    lines = [line.partition("#") for line in block("calls").splitlines()]
    values = [value.partition(":")[0].strip() for _, _, value in lines]
    code = "\n".join(f"print(repr({call.strip()}))" for call, _, _ in lines)
    answers = working.shell(f"from shop.tasks import *\n{code}").splitlines()
    assert answers == values == ["3", "None", "3", "6"]


def test_what_waits_in_the_old_queue_is_done(working: Shop) -> None:
    """By the page's worker: the message was sent before the default queue changed."""
    call = "add.apply_async((1, 2), queue='celery', ignore_result=False).get(timeout=300)"
    assert working.shell(f"from shop.tasks import add\nprint({call})").strip() == "3"


def test_a_call_that_names_no_queue_goes_to_the_new_one(moved: Shop) -> None:
    """Which is the queue of durable runs."""
    route = "app.amqp.router.route({}, 'shop.tasks.add')['queue'].name"
    assert moved.shell(f"from shop import app\nprint({route})").strip() == "jobs"


def test_a_task_that_became_a_job_is_submitted(working: Shop) -> None:
    """Its `.delay()` raises, that of a plain one does not."""
    code = f"""
from jobs.core.errors import RowRequired
from jobs.models import Owner
from shop.tasks import *
Owner.objects.get_or_create(slug="northwind")
try:
    charge.delay(7)
except RowRequired as error:
    print(type(error).__name__)
print(remind.apply_async((7,), ignore_result=False).get(timeout=300))
{block("submitted")}
print(run.pk, run.max_attempts)
"""
    refused, answer, run = working.shell(code).splitlines()
    assert (refused, answer) == ("RowRequired", "reminded 7")
    key, attempts = run.split()
    assert attempts == "4"
    look = f"from jobs.models import Run\nr = Run.objects.get(pk='{key}')\nprint(r.result_value)"
    wait_for(lambda: working.shell(look).strip() == "charged 7", seconds=30)


def test_options_of_celery_have_their_counterparts() -> None:
    """All that `@job` refuses with another name."""
    rows = table(PAGE, after="## A task that needs a row")
    cells = [map(code_words, row[:2]) for row in rows]
    pairs = [pair for old, new in cells for pair in zip(old, new, strict=False)]
    found = {old.partition("=")[0]: new.partition("=")[0] for old, new in pairs}
    assert {name: found.get(name) for name in REPLACED} == REPLACED


def test_django_says_which_driver_it_uses(moved: Shop) -> None:
    """By the command of the page."""
    *words, code = shlex.split(block("driver", language="sh"))
    done = ran(*words, code, folder=moved.folder, environ=moved.environ)
    assert done.stdout == "psycopg\n", done.stderr


def test_periodic_tasks_become_jobs(moved: Shop) -> None:
    """The plan reports as the page has it and changes nothing; the import does it."""
    moved.shell(ENTRIES)
    dry = moved.run(block("plan", language="sh").strip())
    assert dry.returncode == 0, dry.stderr
    expected = _without_times(block("report", language="text"))
    lines = _without_times(dry.stdout)
    assert [line for line in lines if line in expected] == expected
    theirs = sum("belongs to Fairshift or Celery" not in line for line in lines[:-1])
    assert lines[-1] == f"1 of {theirs} would become jobs of northwind"
    look = """
import json
from jobs.models import Job
from django_celery_beat.models import PeriodicTask
jobs = list(Job.objects.values_list("key", "interval_minutes", "priority"))
print(json.dumps([jobs, PeriodicTask.objects.get(name="nightly").enabled]))
"""
    assert json.loads(moved.shell(look)) == [[], True]
    done = moved.run(block("import", language="sh").strip())
    assert "imported      nightly – 1 attempt, due TIME" in _without_times(done.stdout), done.stderr
    assert json.loads(moved.shell(look)) == [[["nightly", 5, 6]], False]


def _without_times(text: str) -> list[str]:
    return [re.sub(r"due [\d: -]+ UTC", "due TIME", line) for line in text.splitlines()]
