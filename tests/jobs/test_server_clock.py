"""Decisions of this process follow PostgreSQL's clock, which is five minutes from its own here."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from pytest_django import Settings

from jobs.core.sql import now
from jobs.management.testing.clock import TestWorld
from jobs.models import Owner
from tests.jobs.system.notices.conftest import ears, messages
from tests.jobs.system.notices.scenes import allow, carry_out, collect, end_runs, endpoint
from tests.receivers import Receiver

__all__ = ["ears", "messages"]

MINUTE = timedelta(minutes=1)


@pytest.fixture(params=[-5, 5], autouse=True)
def server_clock(
    request: pytest.FixtureRequest, db: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """PostgreSQL's clock is behind this machine's, or ahead of it."""
    world = TestWorld(monkeypatch)
    world.move(request.param * MINUTE)
    yield
    world.close()


def paused(until: datetime) -> bool:
    return Owner(slug="acme", paused_at=until - 9 * MINUTE, paused_until=until).is_paused()


def test_a_pause_is_to_come_or_has_passed() -> None:
    """By the clock of PostgreSQL."""
    at = now()
    assert (paused(at + MINUTE), paused(at - MINUTE)) == (True, False)


def test_a_webhook_is_signed_at_this_time(
    acme: Owner, settings: Settings, ears: Receiver, messages: list[dict[str, Any]]
) -> None:
    """Receivers refuse one that is five minutes from their clocks."""
    allow(settings, ears)
    endpoint(acme, ears)
    end_runs(acme)
    collect()
    before = now()
    assert carry_out(messages) == ["delivered"]
    signed_at = int(ears.got[0].headers["webhook-timestamp"])
    assert int(before.timestamp()) <= signed_at <= now().timestamp()
