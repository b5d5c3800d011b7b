"""jobs/system/notices/body.py: details of any kind can be sent, or the attempt is counted."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth import get_user_model
from kombu.utils.json import dumps
from pytest_django import Settings

from fleet import Kind
from jobs.models import Owner
from jobs.system.notices import delivery
from jobs.system.notices.endpoints import make_endpoint
from tests.jobs.logged import logging_run
from tests.jobs.scenes import recorded, submitted
from tests.jobs.system.notices.scenes import allow, carry_out, collect, end_runs, endpoint
from tests.receivers import Receiver

pytestmark = pytest.mark.usefixtures("committed")
Messages = list[dict[str, Any]]


def test_a_result_with_types_that_json_lacks_is_sent_as_text(
    acme: Owner, settings: Settings, ears: Receiver, messages: Messages
) -> None:
    """Celery's JSON has times, decimals, UUIDs and bytes: receivers get their texts."""
    allow(settings, ears)
    user = get_user_model().objects.create_superuser("root")
    wanted = {"name": "ci", "url": ears.url, "events": ["run.ended"], "has_details": True}
    make_endpoint(wanted, owner=acme, actor=user)
    at, key = datetime(2026, 1, 2, tzinfo=UTC), UUID(int=7)
    result = {"at": at, "price": Decimal("1.50"), "id": key, "raw": b"\xff"}
    end_runs(acme, result=dumps(result).encode())
    collect()
    assert carry_out(messages) == ["delivered"]
    shown = json.loads(ears.got[0].body)["data"]["details"]["result"]
    assert shown == {"at": str(at), "price": "1.50", "id": str(key), "raw": str(b"\xff")}
    user.delete()


def test_a_failed_run_sends_its_last_lines(
    acme: Owner, settings: Settings, ears: Receiver, messages: Messages
) -> None:
    """Twenty, with the other details: to an endpoint that asks for these."""
    allow(settings, ears)
    user = get_user_model().objects.create_superuser("root")
    wanted = {"name": "ci", "url": ears.url, "events": ["run.ended"], "has_details": True}
    make_endpoint(wanted, owner=acme, actor=user)
    [run] = submitted(acme, max_attempts=1)
    at = logging_run(run, *(f"line {number}" for number in range(30)))
    recorded(at, Kind.FAILED, error_type="E", error_message="e")
    collect()
    assert carry_out(messages) == ["delivered"]
    log = json.loads(ears.got[0].body)["data"]["details"]["log"]
    assert [line["text"] for line in log] == [f"line {number}" for number in range(10, 30)]
    user.delete()


def test_an_attempt_whose_body_cannot_be_made_is_counted(
    acme: Owner,
    settings: Settings,
    ears: Receiver,
    messages: Messages,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It fails with the error's name, without its text: that could hold a secret."""
    allow(settings, ears)
    made = endpoint(acme, ears)
    end_runs(acme)
    for count, error in enumerate((TypeError, ValueError, KeyError), start=1):

        def broken(_delivery: Any, error: type[Exception] = error) -> str:
            raise error("s3cret")

        monkeypatch.setattr(delivery, "body_of", broken)
        collect()
        assert carry_out(messages) == ["failed"]
        row = made.deliveries.get()
        assert row.problem == f"its body cannot be made ({error.__name__})"
        assert row.attempt_count == count
