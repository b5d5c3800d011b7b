"""jobs/models/calendar.py: what a calendar may be is said with field and limit."""

from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from jobs.models import Attachment, Calendar, Job, Owner, Target


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
    """And once by shared calendars; another owner may use it too, as it may a job's key."""
    for owner in (acme, northwind, None):
        Calendar.objects.create(owner=owner, name="nights")
    for owner in (acme, None):
        with pytest.raises(ValidationError, match="already exists"):
            Calendar.objects.create(owner=owner, name="nights")
    rows: list[tuple[type[Any], dict[str, str]]] = [
        (Job, {"key": "nightly", "task": "tests.add"}),
        (Target, {"name": "fw-1"}),
    ]
    for model, facts in rows:
        for owner in (acme, northwind):
            model.objects.create(owner=owner, **facts)
        with pytest.raises(IntegrityError), transaction.atomic():
            model.objects.create(owner=acme, **facts)


def test_an_attachment_is_to_one_thing(acme: Owner) -> None:
    """Not to none and not to two: forms say it, and the table holds it."""
    calendar = Calendar.objects.create(owner=acme, name="nights")
    target = Target.objects.create(owner=acme, name="fw-1")
    for to in ({}, {"owner": acme, "target": target}):
        attachment = Attachment(calendar=calendar, **to)
        with pytest.raises(ValidationError, match="attachment_to_one_thing"):
            attachment.full_clean()
        with pytest.raises(IntegrityError), transaction.atomic():
            attachment.save()
    Attachment.objects.create(calendar=calendar, target=target)


def test_models_and_tables_give_no_warning(db: None) -> None:
    """Each start and each migration would print it."""
    found = [one for one in run_checks(databases=["default"]) if one.id and "models." in one.id]
    assert found == []
