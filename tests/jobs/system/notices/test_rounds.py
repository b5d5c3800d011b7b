"""jobs/system/notices/rounds.py and listening.py: events find those who ask for them."""

from typing import Any

import pytest
from django.db import DatabaseError, transaction
from pytest_django import Settings

from jobs.core import sql
from jobs.core.locks import LockClass
from jobs.models import EndListener, Owner, WebhookDelivery, WebhookEndpoint
from jobs.models.notice import Interest
from jobs.system import ends
from jobs.system.notices import events, listening, rounds
from jobs.system.notices.delivery import deliver
from tests.jobs.api.conftest import statements
from tests.jobs.scenes import open_transaction
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


def test_a_round_without_a_listener_is_one_statement(db: None) -> None:
    """The pulse asks the same each second."""
    with statements() as found:
        assert rounds.notify() == {"events": 0, "sent": 0}
    assert len(found) == 1


def test_the_last_listener_leaves_in_the_next_round(acme: Owner) -> None:
    """Also if SQL deleted its endpoint: no further ends are recorded."""
    ends.listen(listening.NAME, owner_id=acme.pk)
    rounds.notify()
    assert not EndListener.objects.exists()


def test_listeners_are_synced_one_at_a_time(acme: Owner) -> None:
    """Two at once would not see each other's endpoints, and could remove their listeners."""
    sync_all = transaction.atomic(listening.sync_all)
    with open_transaction(f"SELECT pg_advisory_xact_lock({LockClass.NOTICE_LISTENERS:d}, 0)"):
        sql.query("SET lock_timeout = '200ms'")
        try:
            with pytest.raises(DatabaseError, match="lock timeout"):
                sync_all()
        finally:
            sql.query("RESET lock_timeout")
    assert sync_all() is False


def test_an_event_is_compared_with_the_endpoints_of_its_owner_only(
    acme: Owner,
    northwind: Owner,
    settings: Settings,
    ears: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And with those for all owners: other owners' endpoints cost it nothing."""
    allow(settings, ears)
    for owner in (acme, northwind, None):
        endpoint(owner, ears)
    end_runs(acme)
    compared: list[int | None] = []
    asks_for = events.asks_for

    def noted(one: Interest, event: events.Event) -> bool:
        compared.append(one.owner_id)
        return asks_for(one, event)

    monkeypatch.setattr(events, "asks_for", noted)
    collect()
    assert set(compared) == {acme.pk, None}
    assert set(WebhookDelivery.objects.values_list("owner_id", flat=True)) == {acme.pk, None}
