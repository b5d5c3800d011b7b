"""jobs/runs/dispatch.py: after a commit its hints are in Redis, or the outbox still lists them."""

import base64
import json
import logging
import time

import pytest
import redis
from django.db import transaction
from pytest_django import Settings

from fleet import HEADER
from jobs.core.states import State
from jobs.models import Outbox, Owner
from jobs.runs import dispatch
from jobs.runs.recording import move
from tests.jobs.scenes import hinted, messages, states, submitted

pytestmark = pytest.mark.usefixtures("committed")


def test_a_hint_names_the_run_and_carries_no_payload(acme: Owner) -> None:
    """Task, run, owner and submission are in the headers; the arguments stay in PostgreSQL."""
    [run] = submitted(acme)
    [message] = messages()
    headers = message["headers"]
    assert (headers["task"], headers["id"], headers["retries"]) == ("tests.add", str(run.id), 0)
    assert headers[HEADER] == {
        "owner": "acme",
        "submission": run.submission_id,
        "run": str(run.id),
        "token": 1,
    }
    assert json.loads(base64.b64decode(message["body"]))[:2] == [[], {}]
    assert (headers["argsrepr"], headers["kwargsrepr"]) == ("…", "…")
    assert message["properties"]["delivery_info"]["routing_key"] == "jobs"


def test_only_queued_runs_are_published(acme: Owner) -> None:
    """What was cancelled between commit and publish needs no hint."""
    one, other = submitted(acme, 2, countdown=60)
    with transaction.atomic():
        move([one.id, other.id], to=State.QUEUED)
        move([other.id], to=State.CANCELLED)
    assert hinted() == [one.id]
    assert dispatch.publish([other.id]) == 0


@pytest.fixture
def hung(broker: redis.Redis, settings: Settings) -> redis.Redis:
    """The broker takes connections and answers nobody for a while."""
    settings.FAIRSHIFT = {"PUBLISH_TIMEOUT_SECONDS": 0.5}
    broker.client_pause(4_000)
    return broker


def test_a_hung_broker_does_not_hang_the_caller(
    acme: Owner, hung: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    """The commit stands, the outbox keeps the hints, and the next caller does not even wait."""
    started = time.monotonic()
    with caplog.at_level(logging.WARNING):
        [first] = submitted(acme)
    first_took = time.monotonic() - started
    [second] = submitted(acme)
    second_took = time.monotonic() - started - first_took
    assert first_took < 3.5
    assert second_took < 0.5
    assert "hints left in the outbox (1)" in caplog.text
    assert [row.run_ids for row in Outbox.objects.order_by("id")] == [[first.id], [second.id]]
    assert states(first) == states(second) == ["queued"]
