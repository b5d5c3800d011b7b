"""jobs/system/notices: when attempts end, and when an endpoint is disabled."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from jobs.core.sql import now
from jobs.models import (
    Owner,
    WebhookEndpoint,
)
from jobs.system.notices.endpoints import (
    change_endpoint,
    replay,
)
from tests.jobs.system.notices.scenes import allow, carry_out, collect, end_runs, endpoint
from tests.receivers import receiver

pytestmark = pytest.mark.usefixtures("committed")
Messages = list[dict[str, Any]]


def states(of: WebhookEndpoint) -> list[str]:
    return list(of.deliveries.order_by("id").values_list("state", flat=True))


def test_failures_in_a_row_disable_an_endpoint_with_the_reason(
    acme: Owner, settings: Settings, messages: Messages
) -> None:
    """What waits stays, and is sent when an operator makes it active again."""
    with receiver(503) as ears:
        allow(settings, ears, WEBHOOK_FAILURES=3)
        made = endpoint(acme, ears)
        end_runs(acme)
        for _attempt in range(3):
            collect()
            assert carry_out(messages) == ["failed"]
        made.refresh_from_db()
        assert not made.is_active and made.disabled_at is not None
        assert made.disabled_reason.startswith("3 failures in a row; the last: answered 503")
        collect()
        assert not messages and states(made) == ["waiting"]
        ears.status = 200
        change_endpoint(made, {"is_active": True})
        collect()
        assert carry_out(messages) == ["delivered"]
        made.refresh_from_db()
        assert (made.failure_count, made.disabled_reason) == (0, "")


def test_a_receiver_that_is_gone_is_disabled_at_once(
    acme: Owner, settings: Settings, messages: Messages
) -> None:
    """410 says that it wants no more."""
    with receiver(410) as ears:
        allow(settings, ears)
        made = endpoint(acme, ears)
        end_runs(acme)
        collect()
        carry_out(messages)
    made.refresh_from_db()
    assert not made.is_active and "410" in made.disabled_reason


def test_a_receiver_that_asks_to_wait_is_left_alone(
    acme: Owner, settings: Settings, messages: Messages
) -> None:
    """Retry-After is longer than the back-off."""
    with receiver(429, asked="600") as ears:
        allow(settings, ears)
        made = endpoint(acme, ears)
        end_runs(acme)
        collect()
        carry_out(messages)
    made.refresh_from_db()
    assert made.retry_at is not None
    assert timedelta(seconds=500) < made.retry_at - now() < timedelta(seconds=601)


def test_a_delivery_that_its_receiver_always_refuses_ends(
    acme: Owner, settings: Settings, messages: Messages
) -> None:
    """After WEBHOOK_ATTEMPTS; a replay sends it again under the same id."""
    with receiver(400) as ears:
        allow(settings, ears, WEBHOOK_ATTEMPTS=2)
        made = endpoint(acme, ears)
        end_runs(acme)
        for _attempt in range(2):
            collect()
            carry_out(messages)
        assert states(made) == ["failed"]
        collect()
        assert not messages
        ears.status = 204
        assert replay(made, [made.deliveries.get().pk]) == 1
        collect()
        assert carry_out(messages) == ["delivered"]
        assert len(set(ears.ids)) == 1 and len(ears.ids) == 3
