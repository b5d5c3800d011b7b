"""jobs/checks/encryption.py: check --deploy wants a key ring that can be used and that all have."""

from typing import Any

import pytest

import fleet
from jobs import submit
from jobs.checks.boot import _refuse_bad_ring
from jobs.checks.encryption import check_encryption
from jobs.models import Owner
from tests.jobs.keys import KEY_1, KEY_2, use_ring
from tests.jobs.scenes import ask, living_worker


def ids() -> list[str | None]:
    return [message.id for message in check_encryption()]


def test_a_missing_ring_is_a_warning(settings: Any) -> None:
    """With the setting, and the command that makes a key."""
    [message] = check_encryption()
    assert message.id == "fairshift.W035"
    assert "make-key" in str(message.hint)
    use_ring(settings, KEY_1)


def test_a_ring_that_cannot_be_had_is_an_error_and_refuses_workers(settings: Any) -> None:
    """Before a worker takes a run that it could not read."""
    settings.FAIRSHIFT = {"ENCRYPTION_KEYS_FILE": "/nowhere/ring"}
    assert ids() == ["fairshift.E034"]
    with pytest.raises(fleet.Refused, match="/nowhere/ring: No such file"):
        _refuse_bad_ring()


def test_keys_that_runs_wait_for_are_listed(settings: Any, acme: Owner) -> None:
    """The operator learns which key to give to the workers."""
    use_ring(settings, KEY_2)
    run = submit("tests.add", 1, 2, owner=acme)
    use_ring(settings, KEY_1)
    ask(living_worker(), [run])
    [message] = check_encryption()
    assert (message.id, "has: 2." in message.msg) == ("fairshift.W036", True)
