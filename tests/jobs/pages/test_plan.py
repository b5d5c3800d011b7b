"""jobs/pages/plan: a recorded load with other settings, for those who see all owners."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from jobs.core.sql import now
from jobs.models import Owner
from jobs.pages.plan import page
from tests.jobs.system.rollups.minutes import ended, minutes_ago

PLAN = reverse("jobs:plan")
Person = Callable[..., Client]


def asked(**facts: Any) -> dict[str, str]:
    """Return an address's parameters: the last hour, and what is different."""
    end = now() + timedelta(minutes=1)
    start = end - timedelta(hours=1)
    span = {"start": f"{start:%Y-%m-%dT%H:%M}", "end": f"{end:%Y-%m-%dT%H:%M}"}
    return {"percent": "95", **span, **{name: str(value) for name, value in facts.items()}}


def test_each_owner_s_waits_are_shown(as_root: Client, acme: Owner) -> None:
    """Recorded and replayed ones."""
    for _ in range(3):
        ended(acme, minutes_ago(2))
    answer = as_root.get(PLAN, asked(slots=2))
    assert answer.context["form"].errors == {}
    [row] = answer.context["rows"]
    assert (row["then"].owner, row["then"].started, row["now"].started) == ("acme", 3, 3)
    assert answer.context["plan"].slots == 2


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("slots", "0", "1"),
        ("weight", "acme", "OWNER=NUMBER"),
        ("weight", "nobody=2", "there is no owner"),
        ("cap", "acme=-1", "OWNER=NUMBER"),
        ("window", "nights=25:00-06:00", "HH:MM"),
        ("window", "nights=22:00-06:00", "there is no calendar"),
        ("end", "2020-01-01T00:00", "is not later than from"),
        ("start", "2020-01-01T00:00", "31 days"),
        ("seconds", "-1", "0.001"),
        ("percent", "100", "99.9"),
    ],
)
def test_a_wrong_field_is_named(
    as_root: Client, acme: Owner, field: str, value: str, words: str
) -> None:
    """With its limit, and nothing is replayed."""
    answer = as_root.get(PLAN, asked(**{field: value}))
    assert answer.status_code == 200
    [(name, errors)] = answer.context["form"].errors.items()
    assert name == {"start": "end"}.get(field, field)
    assert words in str(errors)
    assert answer.context["plan"] is None


def test_a_long_replay_is_given_up(
    as_root: Client, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says what to do instead."""
    monkeypatch.setattr(page, "SECONDS", -1.0)
    monkeypatch.setattr("jobs.forecast.replay.simulation.CHECKED", 1)
    ended(acme, minutes_ago(2))
    answer = as_root.get(PLAN, asked())
    assert (answer.context["plan"], "manage.py plan" in answer.content.decode()) == (None, True)


def test_a_member_of_one_owner_sees_no_plan(person: Person, acme: Owner) -> None:
    """The waits of one owner tell of the load of all."""
    assert person("mia", "view_owner", acme="admin").get(PLAN, asked()).status_code == 403
