"""Decisions of this process follow PostgreSQL's clock, which is five minutes from its own here."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from jobs.core.sql import now
from jobs.management.testing.clock import TestWorld
from jobs.models import Owner
from tests.jobs.system.notices.conftest import notices
from tests.jobs.system.notices.scenes import Notices, end_runs, endpoint

__all__ = ["notices"]

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


def test_a_webhook_is_signed_at_this_time(acme: Owner, notices: Notices) -> None:
    """Receivers refuse one that is five minutes from their clocks."""
    endpoint(acme, notices.ears)
    end_runs(acme)
    before = now()
    assert notices.round() == ["delivered"]
    signed_at = int(notices.ears.got[0].headers["webhook-timestamp"])
    assert int(before.timestamp()) <= signed_at <= now().timestamp()
