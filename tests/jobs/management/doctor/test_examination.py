"""The examination of an installation in which something is slow."""

import pytest
import redis

from jobs.management.doctor.examination import Diagnosis, examine
from tests.jobs.scenes import open_transaction

pytestmark = pytest.mark.usefixtures("committed", "broker")


def texts(found: Diagnosis) -> dict[str, str]:
    """Return what was found, by id."""
    return {str(one.id).removeprefix("fairshift."): str(one.msg) for one in found.messages}


def test_a_slow_statement_is_no_broken_server() -> None:
    """What waits for a lock is named as not examined; what does not wait is examined."""
    with open_transaction("LOCK TABLE jobs_worker"):
        told = texts(examine(seconds=8))
    assert "E102" not in told
    assert "check_deployed_database" in told["D001"] and "within 8 s" in told["D001"]
    assert "migrations" not in told["D001"]


def test_a_slow_command_is_no_broken_redis(broker: redis.Redis) -> None:
    """Redis answers, but holds writes back: what writes is named as not examined."""
    broker.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
    try:
        told = texts(examine(seconds=3))
    finally:
        broker.execute_command("CLIENT", "UNPAUSE")
    assert "E201" not in told and "installation" in told["D001"]
