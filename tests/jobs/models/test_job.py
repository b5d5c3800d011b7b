"""jobs/models/job.py: a job is known by its owner's key, and its policies are bounded."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from jobs.models import Job, Owner, Target


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("key", "nul\x00"),
        ("key", "x" * 201),
        ("name", "nul\x00"),
        ("lock_key", "nul\x00"),
        ("priority", 10),
        ("max_attempts", 0),
        ("max_attempts", 101),
        ("time_limit_seconds", 0),
        ("time_limit_seconds", 1e18),
        ("deadline_seconds", -1),
        ("interval_minutes", 0),
        ("zone", "Mars/Olympus"),
    ],
)
def test_a_bad_value_is_refused_by_its_field(acme: Owner, field: str, value: Any) -> None:
    """With a message that the admin shows beside it."""
    facts = {"owner": acme, "key": "nightly", "task": "tests.add", "payload": b"[[], {}, {}]"}
    with pytest.raises(ValidationError) as caught:
        Job(**{**facts, field: value}).full_clean()
    assert list(caught.value.message_dict) == [field]


def test_a_key_is_used_once_per_owner(acme: Owner, northwind: Owner) -> None:
    """Another owner may use it for something else; so it is with targets."""
    for owner in (acme, northwind):
        Job.objects.create(owner=owner, key="nightly", task="tests.add", payload=b"")
        Target.objects.create(owner=owner, name="fw-1")
    for model, facts in ((Job, {"key": "nightly"}), (Target, {"name": "fw-1"})):
        with pytest.raises(IntegrityError), transaction.atomic():
            model.objects.create(owner=acme, **facts)
