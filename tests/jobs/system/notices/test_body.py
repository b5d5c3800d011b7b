"""jobs/system/notices/body.py: details of any kind can be sent, or the attempt is counted."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from kombu.utils.json import dumps

from fleet import Kind
from jobs.models import Owner
from jobs.system.notices import delivery
from tests.jobs.logged import logging_run
from tests.jobs.scenes import recorded, submitted
from tests.jobs.system.notices.scenes import Notices, end_runs, endpoint

pytestmark = pytest.mark.usefixtures("committed")


@pytest.fixture
def detailed(acme: Owner, notices: Notices) -> Iterator[Notices]:
    """An endpoint of acme whose maker sees details, and asks for them."""
    user = User.objects.create_superuser("root")
    endpoint(acme, notices.ears, has_details=True, actor=user)
    yield notices
    user.delete()


def details(notices: Notices) -> dict[str, Any]:
    """Let a round deliver an event; return the details that arrived."""
    assert notices.round() == ["delivered"]
    found: dict[str, Any] = json.loads(notices.ears.got[0].body)["data"]["details"]
    return found


def test_a_result_with_types_that_json_lacks_is_sent_as_text(
    acme: Owner, detailed: Notices
) -> None:
    """Celery's JSON has times, decimals, UUIDs and bytes: receivers get their texts."""
    at, key = datetime(2026, 1, 2, tzinfo=UTC), UUID(int=7)
    result = {"at": at, "price": Decimal("1.50"), "id": key, "raw": b"\xff"}
    end_runs(acme, result=dumps(result).encode())
    shown = {"at": str(at), "price": "1.50", "id": str(key), "raw": str(b"\xff")}
    assert details(detailed)["result"] == shown


def test_a_failed_run_sends_its_last_lines(acme: Owner, detailed: Notices) -> None:
    """Twenty, with the other details: to an endpoint that asks for these."""
    [run] = submitted(acme, max_attempts=1)
    at = logging_run(run, *(f"line {number}" for number in range(30)))
    recorded(at, Kind.FAILED, error_type="E", error_message="e")
    log = details(detailed)["log"]
    assert [line["text"] for line in log] == [f"line {number}" for number in range(10, 30)]


def test_an_attempt_whose_body_cannot_be_made_is_counted(
    acme: Owner, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails with the error's name, without its text: that could hold a secret."""
    made = endpoint(acme, notices.ears)
    end_runs(acme)
    for count, error in enumerate((TypeError, ValueError, KeyError), start=1):

        def broken(_delivery: Any, error: type[Exception] = error) -> str:
            raise error("s3cret")

        monkeypatch.setattr(delivery, "body_of", broken)
        assert notices.round() == ["failed"]
        row = made.deliveries.get()
        assert row.problem == f"its body cannot be made ({error.__name__})"
        assert row.attempt_count == count
