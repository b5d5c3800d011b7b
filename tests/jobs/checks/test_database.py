"""jobs/checks/database.py: a PostgreSQL that may forget is refused, a missing one is named."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.db.utils import ConnectionHandler
from pytest_django import Settings

from jobs.checks import database
from jobs.core import sql
from jobs.core.sql import now
from jobs.models import Calendar, Leader, Owner, Worker
from jobs.system.partitions import make_partitions
from tests.jobs.scenes import living_worker, submitted
from tests.jobs.system.notices.scenes import subscribe
from tests.jobs.windows_world import calendar_of


@pytest.fixture
def week_ahead(db: None) -> None:
    """As many partitions as the checks ask for."""
    make_partitions(days_ahead=database.ALARM_DAYS)


def test_a_driver_that_django_no_longer_uses_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where psycopg2 is installed beside psycopg 3, which Django prefers, and nowhere else."""
    assert database.check_driver() == []
    (tmp_path / "psycopg2").mkdir()
    (tmp_path / "psycopg2/__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    [message] = database.check_driver()
    assert message.id == "fairshift.W101" and "Django uses psycopg 3" in message.msg
    backend: Any = connections["default"]
    assert backend.Database.__name__ == "psycopg"


def driven() -> None:
    """Have a system's worker and a beat that live."""
    living_worker("system@here", queues=["system"])
    Leader.objects.update_or_create(
        name="beat", defaults={"holder": "b1", "until": now() + timedelta(seconds=10)}
    )


@pytest.mark.usefixtures("week_ahead")
def test_what_drives_the_system_is_missed_when_it_is_gone() -> None:
    """Not before the first worker was ever started: the check is run before that, too."""
    assert database.check_deployed_database() == []
    Leader.objects.all().delete()
    living_worker()
    found = {message.id: message.msg for message in database.check_deployed_database()}
    assert found.keys() == {"fairshift.W110", "fairshift.W111"}
    assert found["fairshift.W110"].startswith("No worker takes from queue 'system': ")
    driven()
    assert database.check_deployed_database() == []
    Leader.objects.update(until=now())
    assert [one.id for one in database.check_deployed_database()] == ["fairshift.W111"]


@pytest.mark.usefixtures("week_ahead")
def test_webhooks_and_mails_need_a_worker_of_their_queue() -> None:
    """Only if some are asked for: an installation without them needs no such worker."""
    driven()
    subscribe(Owner.objects.create(slug="acme"))
    [message] = database.check_deployed_database()
    assert message.id == "fairshift.W115" and "'notices'" in message.msg
    living_worker("notices@here", queues=["notices"])
    assert database.check_deployed_database() == []


@pytest.mark.usefixtures("week_ahead")
def test_runs_whose_task_no_worker_knows_are_a_warning() -> None:
    """By queue and task, with the number of runs and both ways out."""
    driven()
    worker = living_worker()
    submitted(Owner.objects.create(slug="acme"), 3)
    assert database.check_deployed_database() == []
    Worker.objects.filter(id=worker).update(tasks=["tests.record"])
    (message,) = database.check_deployed_database()
    assert message.id == "fairshift.W108"
    assert message.msg == "No worker of queue 'jobs' knows task tests.add: 3 runs wait for one."
    assert "fleet move-task" in str(message.hint)
    assert "fleet fail-task" in str(message.hint)


@pytest.mark.usefixtures("week_ahead")
def test_a_worker_that_takes_nothing_is_a_warning() -> None:
    """Each by its name, with what it lacks."""
    driven()
    living_worker("w1@here")
    living_worker("w2@here", queues=[])
    (message,) = database.check_deployed_database()
    assert message.id == "fairshift.W109"
    assert message.msg.startswith("Worker w2@here consumes no queue: ")


@pytest.mark.django_db
def test_switched_off_durability_is_an_error() -> None:
    """A session that does not wait for the disk could see a token issued twice."""
    sql.query("SET LOCAL synchronous_commit = off")
    (message,) = database.check_database(databases=["default"])
    assert message.id == "fairshift.E104"
    assert "synchronous_commit" in message.msg


@pytest.mark.django_db
def test_old_postgresql_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Older than the oldest supported version."""
    monkeypatch.setattr(database, "OLDEST_VERSION", 99)
    (message,) = database.check_database(databases=["default"])
    assert message.id == "fairshift.E103"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("engine", "expected"), [("postgresql", "fairshift.E102"), ("sqlite3", "fairshift.E101")]
)
def test_no_postgresql_is_an_error_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, engine: str, expected: str
) -> None:
    """A server that does not answer, and one of another kind, get a sentence and a fix."""
    server = {"HOST": "127.0.0.1", "PORT": "1", "NAME": ":memory:"}
    nowhere = {"ENGINE": f"django.db.backends.{engine}", **server}
    monkeypatch.setattr(database, "connections", ConnectionHandler({"default": nowhere}))
    (message,) = database.check_deployed_database()
    assert message.id == expected
    assert message.hint


@pytest.mark.usefixtures("week_ahead")
def test_openings_that_end_within_a_day_are_a_warning(acme: Owner) -> None:
    """Of calendars that apply to something: nothing would start there from then on."""
    calendar = calendar_of(acme)
    assert database.check_deployed_database() == []
    soon = now() + timedelta(hours=23)
    Calendar.objects.update(computed_until=soon)
    (message,) = database.check_deployed_database()
    assert message.id == "fairshift.W107"
    assert f"{soon:%Y-%m-%d %H:%M}" in message.msg
    calendar.attachments.all().delete()
    assert database.check_deployed_database() == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "value"), [("FAIRSHIFT", {"LEASE_SECOND": 30}), ("USE_TZ", False)]
)
def test_wrong_settings_leave_a_report(settings: Settings, name: str, value: object) -> None:
    """E001 and E009 name them; the checks that would read them with a traceback are left out."""
    calendar_of(Owner.objects.create(slug="acme"))
    setattr(settings, name, value)
    assert database.check_deployed_database() == []
