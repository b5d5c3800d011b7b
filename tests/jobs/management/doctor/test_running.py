"""jobs/management/doctor/running.py: workers, beat and versions, as the overview sees them."""

import pytest

from jobs import __version__
from jobs.core import sql
from jobs.management.doctor import running
from jobs.models import Worker
from tests.jobs.scenes import keep_beating, living_worker

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


@pytest.mark.usefixtures("running_well")
def test_workers_of_another_version() -> None:
    """With the number of workers of each; a stopped one does not count."""
    Worker.objects.filter(hostname="w1@here").update(version="0.0.9")
    text = found()["fairshift.D310"]
    assert f"this code is {__version__}" in text and "1 worker of 0.0.9" in text
    sql.query("UPDATE jobs_worker SET stopped_at = clock_timestamp() WHERE version = '0.0.9'")
    assert "fairshift.D310" not in found()
