"""jobs/models/job.py: a job is known by its owner's key, and its policies are bounded."""

import pytest
from django.db import IntegrityError, transaction

from jobs.models import Job, Owner, Target


def test_a_key_is_used_once_per_owner(acme: Owner, northwind: Owner) -> None:
    """Another owner may use it for something else; so it is with targets."""
    for owner in (acme, northwind):
        Job.objects.create(owner=owner, key="nightly", task="tests.add", payload=b"")
        Target.objects.create(owner=owner, name="fw-1")
    for model, facts in ((Job, {"key": "nightly"}), (Target, {"name": "fw-1"})):
        with pytest.raises(IntegrityError), transaction.atomic():
            model.objects.create(owner=acme, **facts)
