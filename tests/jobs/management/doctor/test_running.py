"""jobs/management/doctor/running.py: workers, beat and versions, as the overview sees them."""

import pytest

from jobs import __version__
from jobs.core import sql
from jobs.management.doctor import running
from jobs.models import Outbox, Owner, Worker
from jobs.models.recurring import Leader
from jobs.system.notices.endpoints import change_endpoint, make_endpoint
from jobs.system.verdict import rules
from tests.jobs.conftest import broker
from tests.jobs.scenes import keep_beating, living_worker, silence, submitted

__all__ = ["broker"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def running_well(broker: object) -> None:
    """Beat, a worker of each queue."""
    keep_beating()
    living_worker("w1@here")
    living_worker("system@here", queues=["system"])


def found() -> dict[str, str]:
    """Return the messages of all looks by id, each with what to do."""
    messages = [message for look in running.LOOKS for message in look()]
    assert all(message.hint for message in messages)
    return {str(message.id): message.msg for message in messages}


@pytest.mark.usefixtures("running_well")
def test_what_runs_well_passes() -> None:
    assert found() == {}


def test_an_installation_without_processes(broker: object) -> None:
    """No worker, and no beat: each by its own id."""
    sql.query("UPDATE jobs_cursor SET beat_at = clock_timestamp() - interval '1 hour'")
    assert found().keys() == {"fairshift.D301", "fairshift.D302"}


@pytest.mark.usefixtures("running_well")
def test_a_lost_system_worker() -> None:
    """Its queue has no worker, and it is named."""
    worker = Worker.objects.get(hostname="system@here")
    silence(worker.id, seconds=60)
    messages = found()
    assert messages.keys() == {"fairshift.D303", "fairshift.D309"}
    assert "queue system" in messages["fairshift.D303"]
    assert "system@here" in messages["fairshift.D309"]


@pytest.mark.usefixtures("running_well")
def test_a_queue_with_a_backlog_and_no_worker(acme: Owner) -> None:
    submitted(acme)
    assert found() == {}
    worker = Worker.objects.get(hostname="w1@here")
    silence(worker.id, seconds=60)
    assert "fairshift.D304" in found()


@pytest.mark.usefixtures("running_well")
def test_webhooks_that_no_worker_sends(acme: Owner) -> None:
    """Only while one is active."""
    given = {"name": "ci", "url": "https://ci.example/", "events": ["run.ended"]}
    endpoint = make_endpoint(given, owner=acme).endpoint
    assert found().keys() == {"fairshift.D312"}
    change_endpoint(endpoint, {"is_active": False})
    assert found() == {}


@pytest.mark.usefixtures("running_well")
def test_hints_that_are_not_published() -> None:
    Outbox.objects.create(run_ids=[])
    sql.query("UPDATE jobs_outbox SET created_at = clock_timestamp() - interval '2 minutes'")
    assert found().keys() == {"fairshift.D306"}


@pytest.mark.usefixtures("running_well")
def test_workers_of_another_version() -> None:
    """With the number of workers of each; a stopped one does not count."""
    Worker.objects.filter(hostname="w1@here").update(version="0.0.9")
    text = found()["fairshift.D310"]
    assert f"this code is {__version__}" in text and "1 worker of 0.0.9" in text
    sql.query("UPDATE jobs_worker SET stopped_at = clock_timestamp() WHERE version = '0.0.9'")
    assert "fairshift.D310" not in found()


@pytest.mark.usefixtures("running_well")
def test_workers_whose_clock_is_wrong() -> None:
    """By name and seconds; a version that reports no clock is left out."""
    Worker.objects.filter(hostname="w1@here").update(clock_ahead_seconds=-90)
    assert "w1@here 90.0 s behind it" in found()["fairshift.D311"]
    Worker.objects.update(clock_ahead_seconds=None)
    assert found() == {}


@pytest.mark.usefixtures("running_well")
def test_a_beat_whose_clock_is_wrong() -> None:
    """By its machine and seconds; a version that reports no clock is left out."""
    Leader.objects.update(holder="m1:7:ab", clock_ahead_seconds=-90)
    assert "beat's machine m1 differs from PostgreSQL's by -90 s" in found()["fairshift.D314"]
    Leader.objects.update(clock_ahead_seconds=None)
    assert found() == {}


def test_each_id_is_of_a_rule() -> None:
    """Each code is one of the overview's."""
    names = {rule.__name__[1:] for rule in rules.RULES}
    assert set(running.IDS) <= names
