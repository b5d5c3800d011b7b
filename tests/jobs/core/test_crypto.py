"""jobs/core/crypto.py: what the columns hold is opaque but for this module."""

import sys
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.exceptions import ImproperlyConfigured

from jobs.core import crypto
from jobs.core.crypto import (
    PAYLOAD,
    RESULT,
    Damaged,
    Place,
    UnknownKey,
    open_bytes,
    seal,
    seal_of_job,
)
from tests.jobs.keys import KEY_1, KEY_2, use_ring

RUN = Place("acme", UUID("019ab000-0000-7000-8000-000000000001"))


def test_the_last_key_encrypts_and_all_decrypt(settings: Any) -> None:
    """So a new key can be given to all processes before one of them uses it."""
    use_ring(settings, KEY_1)
    old = seal(b"{}", field=RESULT, place=RUN)
    use_ring(settings, KEY_1, KEY_2)
    new = seal(b"{}", field=RESULT, place=RUN)
    assert (old.key, new.key) == (1, 2)
    for each in (old, new):
        assert open_bytes(each.data, key=each.key, field=RESULT, place=RUN) == b"{}"


def test_a_key_that_is_not_here_is_named(settings: Any) -> None:
    """Bytes of another key are not guessed at."""
    use_ring(settings, KEY_2)
    sealed = seal(b"{}", field=PAYLOAD, place=RUN)
    for ring in ((KEY_1,), ()):
        use_ring(settings, *ring)
        with pytest.raises(UnknownKey, match="key 2 is missing"):
            open_bytes(sealed.data, key=2, field=PAYLOAD, place=RUN)


def test_an_error_of_a_job_s_place_is_no_key_error(encrypted: None) -> None:
    """A job's arguments are read from its runs, and from no run of another job."""
    sealed = seal_of_job(b"[]", place=Place("acme", job=7))
    assert open_bytes(sealed.data, key=1, field=PAYLOAD, place=Place("acme", uuid4(), 7)) == b"[]"
    with pytest.raises(Damaged, match="is not of this row"):
        open_bytes(sealed.data, key=1, field=PAYLOAD, place=Place("acme", uuid4(), 8))


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
