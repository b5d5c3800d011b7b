"""tests/flows/leaks.py: a secret is found in each form in which it may stand in bytes."""

import gzip
import json
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path

import pytest

from tests.flows import leaks

SECRET = "Kolibri4711Wagtail"
FORMS = {
    "as it is": f"x {SECRET} y".encode(),
    "in hex, as a dump has bytes": f"x {SECRET} y".encode().hex().encode(),
    "in UTF-16": f"x {SECRET} y".encode("utf-16-le"),
    "in JSON of JSON": json.dumps(json.dumps({"a": SECRET})).encode(),
    **{
        f"in base64, after {n} bytes": b64encode(b"x" * n + SECRET.encode() + b"y")
        for n in range(6)
    },
    **{
        f"in URL-safe base64, {n}": urlsafe_b64encode(b"\xff" * n + SECRET.encode()) for n in (1, 2)
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_found_in_each_form(form: str) -> None:
    """And one that differs in a letter is not."""
    assert leaks.places_of(SECRET, {"there": FORMS[form], "not there": b"else"}) == {"there"}
    assert leaks.places_of(SECRET[::-1], {"there": FORMS[form]}) == set()


def test_archives_are_read_as_what_is_in_them(tmp_path: Path) -> None:
    """All files of a folder and of those in it."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/runs.csv.gz").write_bytes(gzip.compress(SECRET.encode()))
    (tmp_path / "plain").write_bytes(b"other")
    assert SECRET.encode() in leaks.files_below(tmp_path)
    assert b"other" in leaks.files_below(tmp_path)
