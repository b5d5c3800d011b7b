"""jobs/core/keyring.py and crypto.py: how a key ring is written, where it is from, what is bad."""

import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from jobs.core import crypto
from jobs.core.conf import wrong_settings
from jobs.core.keyring import BadRing, parsed
from tests.jobs.keys import KEY_1, KEY_2

SECRET = b64encode(b"\xaa" * 31).decode()


def test_the_last_key_of_a_ring_is_the_newest() -> None:
    """Whatever its id; lines are as good as commas."""
    ring = parsed(f" {KEY_2} ,\n{KEY_1}\n")
    assert (ring.ids, ring.newest.id) == ([1, 2], 1)
    assert len(ring.newest.material) == 32


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "has 0 keys; a ring has 1 to 64"),
        (SECRET, "is wrong at its part 1, which must be ID:BASE64"),
        (f"{KEY_1},x:{SECRET}", "is wrong at its part 2"),
        (f"0:{SECRET}", "has a key with the id 0; an id is from 1 to 32,767"),
        (f"32768:{SECRET}", "has a key with the id 32768"),
        (f"3:{SECRET}", "has a key 3 of 31 bytes; a key has 32"),
        (f"3:{SECRET}!", "has a key 3 that is not base64"),
        (f"{KEY_1},{KEY_2},{KEY_1}", "has key 1 twice"),
        (f"{KEY_1},{KEY_1.replace('1:', '4:')}", "has the same bytes under key 4"),
    ],
)
def test_a_wrong_ring_is_refused_without_its_keys(text: str, problem: str) -> None:
    """The message names the part, and holds no key: it ends in logs."""
    with pytest.raises(BadRing, match=problem) as refused:
        parsed(text)
    assert SECRET not in str(refused.value) and KEY_1[4:] not in str(refused.value)


def test_a_wrong_ring_is_refused_at_boot(settings: Any) -> None:
    """By its name; a value that is no text is not shown either."""
    for value in (f"3:{SECRET}", [SECRET]):
        settings.FAIRSHIFT = {"ENCRYPTION_KEYS": value}
        [problem] = wrong_settings()
        assert problem.startswith("FAIRSHIFT['ENCRYPTION_KEYS']")
        assert SECRET not in problem


def test_a_key_does_not_show_itself() -> None:
    """Not in a traceback or a log of its object."""
    assert KEY_1[4:20] not in repr(parsed(KEY_1)) and "material" not in repr(parsed(KEY_1))


def test_a_ring_comes_from_a_file_or_a_command(settings: Any, tmp_path: Path) -> None:
    """A command may fetch it from a key service; it runs once."""
    file, count = tmp_path / "ring", tmp_path / "count"
    file.write_text(f"{KEY_1}\n{KEY_2}\n")
    settings.FAIRSHIFT = {"ENCRYPTION_KEYS_FILE": str(file)}
    assert crypto.key_ids() == [1, 2]
    script = tmp_path / "fetch.py"
    script.write_text(f"open({str(count)!r}, 'a').write('x'); print({KEY_2!r})")
    settings.FAIRSHIFT = {"ENCRYPTION_KEYS_COMMAND": f"{sys.executable} {script}"}
    assert crypto.key_ids() == [2] == crypto.key_ids()
    assert count.read_text() == "x"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"ENCRYPTION_KEYS_FILE": "/nowhere/ring"}, "_FILE.*/nowhere/ring: No such file"),
        ({"ENCRYPTION_KEYS_COMMAND": "/nowhere/fetch"}, "_COMMAND.*from its command: No such"),
        ({"ENCRYPTION_KEYS_COMMAND": "false"}, "its command ended with status 1"),
        ({"ENCRYPTION_KEYS_COMMAND": "true"}, "has 0 keys"),
        ({"ENCRYPTION_KEYS_COMMAND": "echo 1:é"}, "no ASCII text"),
        ({"ENCRYPTION_KEYS": KEY_1, "ENCRYPTION_KEYS_COMMAND": "true"}, "is given twice"),
    ],
)
def test_a_ring_that_cannot_be_had_is_refused(
    settings: Any, given: dict[str, str], problem: str
) -> None:
    """By the setting that names it."""
    settings.FAIRSHIFT = given
    with pytest.raises(ImproperlyConfigured, match=problem):
        crypto.ring()
