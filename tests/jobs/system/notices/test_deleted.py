"""A deleted webhook is gone at once; retention deletes its deliveries in batches, then its row."""

import pytest

from jobs.core import sql
from jobs.core.sql import now
from jobs.models import AuditEntry, EndListener, Owner, WebhookDelivery, WebhookEndpoint
from jobs.system.notices import endpoints
from jobs.system.reencryption import keys_in_use
from jobs.system.retention import other_tables
from jobs.system.retention.rules import rules_now
from tests.jobs.system.notices.scenes import Notices, collect, end_runs, endpoint

pytestmark = pytest.mark.usefixtures("committed")
MANY = """
INSERT INTO jobs_webhookdelivery
    (endpoint_id, owner_id, event_id, event_type, event_at, data, state, next_at)
SELECT %s, %s, 'evt_' || n, 'run.ended', now(), '{}', 'waiting', now()
FROM generate_series(1, %s) AS n
"""


def with_deliveries(owner: Owner, count: int) -> WebhookEndpoint:
    made = endpoint(owner, "https://ci.example/hook")
    sql.query(MANY, [made.pk, owner.pk, count])
    return made


def test_a_deleted_webhook_sends_nothing_and_is_not_found(acme: Owner, notices: Notices) -> None:
    """Also what is on its way is dropped; no end is recorded for it any more."""
    made = endpoint(acme, notices.ears)
    end_runs(acme)
    collect()
    assert len(notices.messages) == 1
    endpoints.delete_endpoint(made)
    assert notices.carry_out() == ["dropped"] and not notices.ears.got
    assert notices.round() == [] and not EndListener.objects.exists()
    assert not WebhookEndpoint.objects.exists()
    assert "webhooks" not in {row["part"] for row in keys_in_use()}
    # A second deletion finds nothing, and is no second act.
    endpoints.delete_endpoint(made)
    assert AuditEntry.objects.filter(action="delete webhook").count() == 1


def test_retention_deletes_deliveries_in_batches_and_the_row_at_last(
    acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement deletes one batch, a round some batches; other webhooks keep theirs."""
    doomed, stays = with_deliveries(acme, 5_000), with_deliveries(acme, 30)
    endpoints.delete_endpoint(doomed)
    monkeypatch.setattr(other_tables, "BATCH", 400)
    monkeypatch.setattr(other_tables, "BATCHES", 10)
    first = other_tables.remove_others(rules_now())
    assert (first["deliveries"], first["webhooks"]) == (4_000, 0)
    second = other_tables.remove_others(rules_now())
    assert (second["deliveries"], second["webhooks"]) == (1_000, 1)
    assert WebhookDelivery.objects.count() == stays.deliveries.count() == 30
    assert [one.pk for one in WebhookEndpoint._base_manager.all()] == [stays.pk]


def test_an_owner_is_deleted_before_the_deliveries_of_its_webhooks(acme: Owner) -> None:
    """Its webhooks belong to no owner then, and are not those of the installation either."""
    with_deliveries(acme, 2_000)
    acme.delete()
    [left] = WebhookEndpoint._base_manager.all()
    assert (left.owner_id, left.is_active) == (None, False)
    assert left.deleted_at is not None and left.deleted_at <= now()
    assert not WebhookEndpoint.objects.exists()
    removed = other_tables.remove_others(rules_now())
    assert (removed["deliveries"], removed["webhooks"]) == (2_000, 1)
    assert not WebhookDelivery.objects.exists()
