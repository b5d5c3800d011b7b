"""tests/flows/leaks.py: a secret is found in each form in which it may stand in bytes."""

import json
from base64 import b64encode, urlsafe_b64encode

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
