"""jobs/system/notices/rounds.py and listening.py: events find those who ask for them."""

from typing import Any

import pytest
from pytest_django import Settings

from jobs.models import Owner, WebhookEndpoint
from jobs.system import ends
from jobs.system.notices import rounds
from jobs.system.notices.delivery import deliver
from tests.jobs.system.notices.scenes import allow, carry_out, collect, end_runs, endpoint
from tests.receivers import Receiver

pytestmark = pytest.mark.usefixtures("committed", "messages")
Messages = list[dict[str, Any]]


def test_rounds_send_no_more_than_the_limit_while_nothing_is_carried_out(
    acme: Owner,
    settings: Settings,
    ears: Receiver,
    messages: Messages,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A slow receiver fills PostgreSQL, not Redis; what is carried out makes room."""
    monkeypatch.setattr(rounds, "MOST", 2)
    allow(settings, ears)
    endpoint(acme, ears)
    end_runs(acme, 5)
    for _round in range(3):
        collect()
    assert len(messages) == 2
    first = messages.pop(0)
    assert deliver(first["delivery"]) == "delivered"
    collect()
    assert len(messages) == 2
    assert carry_out(messages) == ["delivered"] * 2


def test_an_endpoint_that_is_made_in_a_round_misses_no_end(
    acme: Owner,
    northwind: Owner,
    settings: Settings,
    ears: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A round reads the endpoints after it has taken the ends that were recorded for them."""
    allow(settings, ears)
    endpoint(acme, ears)
    made: list[WebhookEndpoint] = []
    take = ends.take

    def late(name: str) -> ends.Ends:
        if not made:
            made.append(endpoint(northwind, ears))
            end_runs(northwind)
        return take(name)

    monkeypatch.setattr(ends, "take", late)
    collect()
    assert made[0].deliveries.count() == 1
