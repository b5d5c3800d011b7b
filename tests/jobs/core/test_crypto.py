"""jobs/core/crypto.py: what the columns hold is opaque but for this module."""

import pytest

from jobs.core.crypto import UnknownKey, open_bytes, read_body, read_result


def test_clear_bytes_are_json() -> None:
    """A payload is a Celery body, of which callbacks are no arguments; a result is a value."""
    assert read_body(b'[[1], {"y": 2}, {"callbacks": null}]', key=0) == ([1], {"y": 2})
    assert read_result(memoryview(b'{"x": null}'), key=0) == {"x": None}


def test_a_key_that_is_not_here_is_named() -> None:
    """Bytes of another key are not guessed at."""
    with pytest.raises(UnknownKey, match="no key 7 is known here"):
        open_bytes(b"\x00", key=7)
