"""jobs/pages/owners: an owner's work, share, usage and limits; paused, resumed and limited."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from fleet import BrokerUnavailable, OwnerState
from fleet.broker.owners import Owners
from jobs.models import AuditEntry, Owner, Run
from jobs.owners.work import OwnerWork
from jobs.pages.owners import words
from tests.jobs.scenes import submitted

OWNERS = reverse("jobs:owners")
PAUSE, CHANGE = (reverse("jobs:owner_action", args=["acme", name]) for name in ("pause", "change"))
Person = Callable[..., Client]


def address(name: str, slug: str = "acme") -> str:
    return reverse(f"jobs:{name}", args=[slug])


def test_the_list_shows_work_and_shares(
    as_root: Client, failed_run: Run, northwind: Owner, acme: Owner
) -> None:
    """The share of the last hour's runs: acme used all of the workers' time."""
    submitted(northwind, 3)
    page = as_root.get(OWNERS)
    shown = {each["owner"].slug: each for each in page.context["owners"]}
    assert [*shown] == ["northwind", "acme"]
    assert shown["northwind"]["standing"].queued == 3
    assert (shown["acme"]["standing"].failed, shown["acme"]["standing"].queued) == (1, 0)
    assert (shown["acme"]["received"], shown["northwind"]["received"]) == (1.0, 0.0)
    assert 'href="/owners/acme/"' in page.content.decode()


def test_a_share_counts_the_work_of_others_and_does_not_name_them(
    person: Person, failed_run: Run, stranger: Owner
) -> None:
    client = person("mia", "view_owner", acme="viewer")
    submitted(stranger, 2)
    page = client.get(address("owner"))
    assert page.context["used"].received == 1.0
    assert "stranger" not in page.content.decode()


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("until", {"until_0": "2001-01-01", "until_1": "00:00"}),
        ("until", {"until_0": "9999-12-31", "until_1": "23:59"}),
        ("until", {"until_0": "soon", "until_1": "06:00"}),
        ("reason", {"reason": "x" * 501}),
    ],
)
def test_a_wrong_pause_is_named_at_its_field(
    as_root: Client, acme: Owner, field: str, given: dict[str, str]
) -> None:
    """And nothing is paused."""
    page = as_root.post(PAUSE, given)
    assert page.status_code == 200 and [*page.context["form"].errors] == [field]
    acme.refresh_from_db()
    assert not acme.is_paused()


def test_limits_are_set_by_admins_of_the_installation(
    as_root: Client, person: Person, acme: Owner
) -> None:
    """A larger share takes from others, so an owner's own admin does not set it."""
    own = person("ada", "view_owner", "change_owner", acme="admin")
    given: dict[str, Any] = {"weight": 5, "max_running": 2, "rate_limit_per_minute": ""}
    given |= {"run_days": 365, "reason": "agreed"}
    given |= {"name": acme.name, "zone": "UTC", "wait_objective_percent": 95}
    own.post(CHANGE, given)
    assert not AuditEntry.objects.filter(action="limit").exists()
    assert as_root.post(CHANGE, given).status_code == 302
    acme.refresh_from_db()
    assert (acme.weight, acme.max_running, acme.rate_limit_per_minute) == (5, 2, None)
    assert (acme.run_days, acme.failed_run_days) == (365, None)
    [entry] = AuditEntry.objects.filter(action="limit")
    assert entry.reason == "agreed" and entry.details["before"]["weight"] == 3
    as_root.post(CHANGE, {**given, "run_days": ""})
    acme.refresh_from_db()
    assert acme.run_days is None
    for wrong in (1001, ""):
        answer = as_root.post(CHANGE, {**given, "weight": wrong})
        assert [*answer.context["form"].errors] == ["weight"]


def standing(state: OwnerState | None, **facts: Any) -> OwnerWork:
    given = dict.fromkeys(("running", "queued", "held", "failed"), 0)
    times = dict.fromkeys(("oldest_wait_seconds", "rest_seconds", "entitled"))
    return OwnerWork(state=state, **{**given, **times, **facts})


@pytest.mark.parametrize(
    ("stands", "word"),
    [
        (standing(OwnerState.AT_CAP), "as its cap allows: 2"),
        (standing(OwnerState.RESTING, rest_seconds=4.0), "the next one is in 4.0 s"),
        (standing(OwnerState.ELIGIBLE), "its turn comes"),
        (standing(OwnerState.IDLE), "Nothing waits"),
        (standing(OwnerState.IDLE, held=3), "wait for their window"),
        (standing(None), "Redis does not answer"),
    ],
)
def test_each_state_has_its_sentence(stands: OwnerWork, word: str) -> None:
    owner = Owner(slug="acme", max_running=2, rate_limit_per_minute=10)
    assert word in words.why_now(owner, stands)
    assert words.now_pill(owner, stands)
    assert words.why_now(Owner(slug="acme"), stands) and words.now_pill(Owner(), stands)


def test_without_redis_the_pages_open_and_say_it(
    as_root: Client, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts come from PostgreSQL, and stay."""

    def away(*_args: Any, **_given: Any) -> None:
        raise BrokerUnavailable("away")

    monkeypatch.setattr(Owners, "snapshot", away)
    assert "Redis does not answer" in as_root.get(OWNERS).content.decode()
    assert "Redis does not answer" in as_root.get(address("owner")).content.decode()
