"""jobs/models/owner.py: what an owner may be is held by the form and by the table."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management.sql import emit_post_migrate_signal
from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone

from fleet.router import is_route
from jobs import submit
from jobs.models import Owner, Run
from tests.jobs.keys import KEY_1, use_ring


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("slug", "nul\x00"),
        ("name", "nul\x00"),
        ("paused_reason", "nul\x00"),
        ("zone", "Mars/Olympus"),
        ("zone", "../etc/passwd"),
        ("weight", 0),
        ("weight", 1001),
        ("max_running", 0),
        ("rate_limit_per_minute", 0),
        ("run_days", 0),
        ("run_days", 3661),
        ("failed_run_days", 0),
        ("failed_run_days", 3661),
    ],
)
def test_a_bad_value_is_refused_by_its_field(northwind: Owner, field: str, value: Any) -> None:
    """With a message that the admin shows beside it; the table refuses a bad number, too."""
    owner = Owner(**{"slug": "acme", field: value})
    with pytest.raises(ValidationError) as caught:
        owner.full_clean()
    assert list(caught.value.message_dict) == [field]
    if isinstance(value, int):
        with pytest.raises(IntegrityError), transaction.atomic():
            Owner.objects.update(**{field: value})


NAMES = ["", "Ä b!", "-acme", "_acme", ".", "with space", "acme\n", "x" * 101]


@pytest.mark.parametrize("slug", NAMES)
def test_a_name_is_one_to_the_queues_the_form_and_the_table(db: None, slug: str) -> None:
    """One rule: who creates another one hears of field and limit, and the table refuses it too."""
    assert not is_route(slug, lock="")
    with pytest.raises(ValidationError, match=r"'slug': \[.*(1 to 100|blank)"):
        Owner.objects.create(slug=slug)
    with pytest.raises(DatabaseError), transaction.atomic():
        Owner.objects.bulk_create([Owner(slug=slug)])
    assert not Owner.objects.exists()


@pytest.mark.parametrize("slug", ["a", "7", "Acme.Ltd_2-b", "x" * 100])
def test_what_the_queues_take_is_an_owner_s_name(db: None, slug: str) -> None:
    """The longest too."""
    assert is_route(slug, lock="")
    owner = Owner(slug=slug)
    owner.full_clean()
    owner.save()


@pytest.mark.parametrize(
    ("has_begun", "until", "is_paused"),
    [
        (False, None, False),
        (False, timedelta(hours=1), False),
        (True, None, True),
        (True, timedelta(hours=1), True),
        (True, timedelta(hours=-1), False),
    ],
)
def test_a_pause_has_begun_and_is_not_over(
    acme: Owner, has_begun: bool, until: timedelta | None, is_paused: bool
) -> None:
    """The property and the query agree."""
    moment = timezone.now()
    acme.paused_at = moment if has_begun else None
    acme.paused_until = moment + until if until else None
    acme.save()
    assert acme.is_paused() == is_paused
    assert Owner.objects.paused().exists() == is_paused


@pytest.mark.django_db
def test_an_id_may_come_again_after_a_flush(settings: Any) -> None:
    """As in a test suite that resets sequences: encrypted arguments are bound to the new owner."""
    use_ring(settings, KEY_1)
    for slug in ("before", "after"):
        Owner.objects.all().delete()
        emit_post_migrate_signal(verbosity=0, interactive=False, db="default")
        run = submit("tests.add", 1, 2, owner=Owner.objects.create(pk=77, slug=slug))
        assert Run.objects.get(pk=run.pk).arguments == ([], {"x": 1, "y": 2})
        Run.objects.all().delete()
