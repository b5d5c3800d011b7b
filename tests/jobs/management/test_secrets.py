"""`manage.py secrets`: a key, the rows of each key, and their re-encryption."""

from typing import Any

import pytest
from django.core.management import CommandError, call_command

from jobs import submit
from jobs.core.keyring import parsed
from jobs.models import Owner, Run
from tests.jobs.keys import KEY_1, KEY_2, use_ring


def printed(capsys: Any, *arguments: str) -> list[str]:
    """Return the lines that a part prints."""
    call_command("secrets", *arguments)
    return str(capsys.readouterr().out).splitlines()


def test_a_key_is_made_with_the_next_id(settings: Any, capsys: Any) -> None:
    """It is a ring of its own, and none is printed twice."""
    [line] = printed(capsys, "make-key")
    assert parsed(line).newest.id == 1
    use_ring(settings, KEY_1, KEY_2)
    [line] = printed(capsys, "make-key")
    assert parsed(line).newest.id == 3
    assert parsed(printed(capsys, "make-key", "--id", "77")[0]).newest.id == 77


def test_the_status_says_which_key_may_go(settings: Any, capsys: Any, acme: Owner) -> None:
    """When its count is 0; and which one is missing here."""
    use_ring(settings, KEY_1)
    submit("tests.add", 1, 2, owner=acme)
    use_ring(settings, KEY_1, KEY_2)
    assert printed(capsys, "status") == ["key 1      1 arguments", "key 2      nothing (encrypts)"]
    rewritten, advice = printed(capsys, "reencrypt", "--to", "2")
    assert rewritten.startswith("rewritten: 1 runs")
    assert advice.endswith("To refuse others from now on, turn FAIRSHIFT_ENCRYPTION_REQUIRED on.")
    assert printed(capsys, "status") == [
        "key 1      nothing (may go)",
        "key 2      1 arguments (encrypts)",
    ]
    use_ring(settings)
    assert printed(capsys, "status")[0] == "key 2      1 arguments (missing here)"


def test_rows_that_are_left_are_an_error(settings: Any, capsys: Any, acme: Owner) -> None:
    """A script must not remove the key then."""
    use_ring(settings, KEY_1)
    submit("tests.add", 1, 2, owner=acme)
    Run.objects.update(payload=b"x")
    use_ring(settings, KEY_1, KEY_2)
    with pytest.raises(CommandError, match="1 rows are left"):
        printed(capsys, "reencrypt")
    assert "is cut off" in capsys.readouterr().out


def test_without_a_ring_there_is_nothing_to_encrypt_with(capsys: Any, acme: Owner) -> None:
    """The message names the setting."""
    with pytest.raises(CommandError, match="no key ring"):
        printed(capsys, "reencrypt")
    assert printed(capsys, "status")[-1] == "No key ring: set FAIRSHIFT_ENCRYPTION_KEYS."
