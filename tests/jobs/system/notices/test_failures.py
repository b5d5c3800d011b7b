"""jobs/system/notices: what a failed attempt says, when attempts end, and when an endpoint does."""

from datetime import timedelta

import pytest

from jobs.core.sql import now
from jobs.models import Owner, WebhookEndpoint
from jobs.system.notices.endpoints import change_endpoint, replay
from tests.jobs.system.notices.scenes import Notices, end_runs, endpoint, states
from tests.receivers import Receiver, receiver

pytestmark = pytest.mark.usefixtures("committed")


def failed_at(to: Receiver, acme: Owner, notices: Notices, **given: float) -> WebhookEndpoint:
    """Return an endpoint of this receiver, after an attempt that has failed."""
    notices.allow(to, **given)
    made = endpoint(acme, to)
    end_runs(acme)
    assert notices.round() == ["failed"]
    made.refresh_from_db()
    return made


def test_failures_in_a_row_disable_an_endpoint_with_the_reason(
    acme: Owner, notices: Notices
) -> None:
    """What waits stays, and is sent when an operator makes it active again."""
    with receiver(503) as ears:
        made = failed_at(ears, acme, notices, WEBHOOK_FAILURES=3)
        assert [notices.round() for _attempt in range(2)] == [["failed"], ["failed"]]
        made.refresh_from_db()
        assert not made.is_active and made.disabled_at is not None
        assert made.disabled_reason.startswith("3 failures in a row; the last: answered 503")
        assert notices.round() == [] and states(made) == ["waiting"]
        ears.status = 200
        change_endpoint(made, {"is_active": True})
        assert notices.round() == ["delivered"]
        made.refresh_from_db()
        assert (made.failure_count, made.disabled_reason) == (0, "")


def test_a_receiver_that_is_gone_is_disabled_at_once(acme: Owner, notices: Notices) -> None:
    """410 says that it wants no more."""
    with receiver(410) as ears:
        made = failed_at(ears, acme, notices)
    assert not made.is_active and "410" in made.disabled_reason


def test_a_receiver_that_asks_to_wait_is_left_alone(acme: Owner, notices: Notices) -> None:
    """Retry-After is longer than the back-off."""
    with receiver(429, asked="600") as ears:
        made = failed_at(ears, acme, notices)
    assert made.retry_at is not None
    assert timedelta(seconds=500) < made.retry_at - now() < timedelta(seconds=601)


def test_a_redirect_is_not_followed(acme: Owner, notices: Notices) -> None:
    """It could lead past the checks of addresses: it is a failure that says so."""
    with receiver(302, location=notices.ears.url) as sly:
        made = failed_at(sly, acme, notices)
    assert "redirects are not followed" in made.deliveries.get().problem
    assert not notices.ears.got and len(sly.got) == 1


def test_a_slow_receiver_is_cut_off(acme: Owner, notices: Notices) -> None:
    """After WEBHOOK_TIMEOUT_SECONDS it counts as failed."""
    notices.ears.may_answer.clear()
    made = failed_at(notices.ears, acme, notices, WEBHOOK_TIMEOUT_SECONDS=0.3)
    assert "longer than the limit of 0.3 s" in made.deliveries.get().problem


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://127.0.0.1:8443/", "loopback"),
        ("https://10.1.2.3/", "private"),
        ("https://169.254.169.254/", "link-local"),
        ("https://[::1]/", "loopback"),
        ("https://localhost/", "loopback"),
    ],
)
def test_a_private_address_is_never_reached(
    acme: Owner, notices: Notices, url: str, problem: str
) -> None:
    """By the rules of the HTTP task, at each attempt: a name may point elsewhere by then."""
    made = endpoint(acme, "https://ci.example/")
    # As one that was allowed when it was made.
    WebhookEndpoint.objects.update(url=url)
    end_runs(acme)
    assert notices.round() == ["failed"]
    assert problem in made.deliveries.get().problem


def test_a_delivery_that_its_receiver_always_refuses_ends(acme: Owner, notices: Notices) -> None:
    """After WEBHOOK_ATTEMPTS; a replay sends it again under the same id."""
    with receiver(400) as ears:
        made = failed_at(ears, acme, notices, WEBHOOK_ATTEMPTS=2)
        notices.round()
        assert states(made) == ["failed"]
        assert notices.round() == []
        ears.status = 204
        assert replay(made, [made.deliveries.get().pk]) == 1
        assert notices.round() == ["delivered"]
        assert len(set(ears.ids)) == 1 and len(ears.ids) == 3
