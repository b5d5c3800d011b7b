"""jobs/models/calendar.py: what a calendar may be is said with field and limit."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from jobs.models import Calendar, Owner


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"cut_off_seconds": -1}, "cut_off_seconds.*greater than or equal to 0"),
        ({"cut_off_seconds": 86_401}, "cut_off_seconds.*less than or equal to 86400"),
        ({"spread_seconds": 3_601}, "spread_seconds.*less than or equal to 3600"),
        ({"name": "x" * 201}, "name.*at most 200 characters"),
        ({"name": ""}, "name.*blank"),
        ({"end": "never"}, "end.*never"),
    ],
)
def test_a_bad_option_is_refused_by_its_name(
    acme: Owner, wrong: dict[str, Any], problem: str
) -> None:
    """Where it is created and where it is changed; nothing is stored."""
    given = {"name": "nights"} | wrong
    with pytest.raises(ValidationError, match=problem):
        Calendar.objects.create(owner=acme, **given)
    assert not Calendar.objects.exists()
    made = Calendar.objects.create(owner=acme, name="nights")
    for name, value in wrong.items():
        setattr(made, name, value)
    with pytest.raises(ValidationError, match=problem):
        made.save()


def test_a_name_is_used_once_by_an_owner(acme: Owner, northwind: Owner) -> None:
    """And once by shared calendars; another owner may use it too."""
    for owner in (acme, northwind, None):
        Calendar.objects.create(owner=owner, name="nights")
    for owner in (acme, None):
        with pytest.raises(ValidationError, match="already exists"):
            Calendar.objects.create(owner=owner, name="nights")
