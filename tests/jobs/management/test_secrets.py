"""`manage.py secrets`: a key, the rows of each key, and their re-encryption."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import CommandError

from jobs import submit
from jobs.core.keyring import parsed
from jobs.models import Owner, Run
from tests.jobs.keys import KEY_1, KEY_2, use_ring
from tests.jobs.management.conftest import Printed

Lines = Callable[..., list[str]]


@pytest.fixture
def lines(printed: Printed) -> Lines:
    """Return the lines that a part prints."""
    return lambda *words: printed("secrets", *words).splitlines()


def test_a_key_is_made_with_the_next_id(settings: Any, lines: Lines) -> None:
    """It is a ring of its own, and none is printed twice."""
    [line] = lines("make-key")
    assert parsed(line).newest.id == 1
    use_ring(settings, KEY_1, KEY_2)
    [line] = lines("make-key")
    assert parsed(line).newest.id == 3
    assert parsed(lines("make-key", "--id", "77")[0]).newest.id == 77


def test_the_status_says_which_key_may_go(settings: Any, lines: Lines, acme: Owner) -> None:
    """When its count is 0; and which one is missing here."""
    use_ring(settings, KEY_1)
    submit("tests.add", 1, 2, owner=acme)
    use_ring(settings, KEY_1, KEY_2)
    assert lines("status") == ["key 1      1 arguments", "key 2      nothing (encrypts)"]
    rewritten, advice = lines("reencrypt", "--to", "2")
    assert rewritten.startswith("rewritten: 1 runs")
    assert advice.endswith("To refuse others from now on, turn FAIRSHIFT_ENCRYPTION_REQUIRED on.")
    assert lines("status") == ["key 1      nothing (may go)", "key 2      1 arguments (encrypts)"]
    use_ring(settings)
    assert lines("status")[0] == "key 2      1 arguments (missing here)"


def test_rows_that_are_left_are_an_error(
    settings: Any, lines: Lines, capsys: pytest.CaptureFixture[str], acme: Owner
) -> None:
    """A script must not remove the key then."""
    use_ring(settings, KEY_1)
    submit("tests.add", 1, 2, owner=acme)
    Run.objects.update(payload=b"x")
    use_ring(settings, KEY_1, KEY_2)
    with pytest.raises(CommandError, match="1 rows are left"):
        lines("reencrypt")
    assert "is cut off" in capsys.readouterr().out


def test_without_a_ring_there_is_nothing_to_encrypt_with(lines: Lines, acme: Owner) -> None:
    """The message names the setting."""
    with pytest.raises(CommandError, match="no key ring"):
        lines("reencrypt")
    assert lines("status")[-1] == "No key ring: set FAIRSHIFT_ENCRYPTION_KEYS."
