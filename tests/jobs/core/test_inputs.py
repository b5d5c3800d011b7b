"""jobs/core/inputs.py: names are one line without control characters, whichever way they come."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from jobs import submit, submit_many, upsert_jobs
from jobs.core.errors import FairshiftError
from jobs.models import Calendar, Job, Owner, Run, Target
from jobs.owners.tokens import make_token

ADD: dict[str, Any] = {"x": 1, "y": 2}
JOB: dict[str, Any] = {"key": "a", "task": "tests.add", "arguments": ADD}

WAYS: dict[str, Callable[[Owner, str], object]] = {
    "target": lambda owner, name: submit("tests.add", arguments=ADD, owner=owner, target=name),
    "lock": lambda owner, name: submit("tests.add", arguments=ADD, owner=owner, lock=name),
    "labels": lambda owner, name: submit(
        "tests.add", arguments=ADD, owner=owner, labels={name: "x"}
    ),
    "labels.a": lambda owner, name: submit(
        "tests.add", arguments=ADD, owner=owner, labels={"a": name}
    ),
    "label": lambda owner, name: submit_many("tests.add", [ADD], owner=owner, label=name),
    "idempotency_key": lambda owner, name: submit(
        "tests.add", arguments=ADD, owner=owner, idempotency_key=name
    ),
    "key": lambda owner, name: upsert_jobs(owner, [{**JOB, "key": name}]),
    "name": lambda owner, name: upsert_jobs(owner, [{**JOB, "name": name}]),
    "token": lambda owner, name: make_token(name, scopes=["read"], owner=owner),
    "owner form": lambda owner, name: Owner(slug="b", name=name).full_clean(),
    "calendar form": lambda owner, name: Calendar(owner=owner, name=name).full_clean(),
    "target form": lambda owner, name: Target(owner=owner, name=name).full_clean(),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_name_with_a_control_character_is_refused(acme: Owner, way: str) -> None:
    """Terminals, logs and lists show names; nothing is stored."""
    for control in ("\x1b", "\n", "\t", "\x7f", "\x9b", "\u2028"):
        with pytest.raises((FairshiftError, ValidationError)) as refused:
            WAYS[way](acme, f"a{control}b")
        assert "ontrol character" in str(refused.value), control
    assert not Run.objects.exists() and not Job.objects.exists()
    WAYS[way](acme, "Zürich – 東京 🚀")
