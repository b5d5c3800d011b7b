"""jobs/catalog/redaction.py: some values are shown to no one, by their type or their name."""

from typing import Any

import pytest

from jobs import Secret, job
from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.redaction import SHOWN, hidden, hidden_arguments, restored
from jobs.catalog.registry import resolve


@job(name="tests.login")
def login(
    user: str, pin: Secret[str], more: list[Secret[int]] | None = None, *, pw: Any = 0
) -> str:
    return f"{user} {pin} {more} {pw}"


def test_a_value_is_hidden_by_its_type() -> None:
    """Given by name or by position, and inside of other types."""
    given = {"user": "ann", "pin": "1234", "more": [1]}
    assert hidden_arguments("tests.login", (), given)[1] == {**given, "pin": SHOWN, "more": SHOWN}
    assert hidden_arguments("tests.login", ("ann", "1234"), {}) == (["ann", SHOWN], {})


def test_a_secret_is_its_value_for_the_task() -> None:
    """And it is checked as its type; the schema says that it is only written."""
    schema = ArgumentSchema.of(resolve("tests.login"))
    assert schema.bind((), {"user": "ann", "pin": "1234"}) == ([], {"user": "ann", "pin": "1234"})
    assert schema.json_schema()["properties"]["pin"]["writeOnly"] is True
    assert login("ann", "1234") == "ann 1234 None 0"


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "db_password",
        "API-Key",
        "Authorization",
        "access_token",
        "client-secret",
        "Cookie",
    ],
)
def test_a_value_is_hidden_by_its_name(name: str) -> None:
    """At any depth, also of a task that is not here any more, and of a result."""
    given = {"a": [{name: "x", "b": 1}]}
    assert hidden_arguments("no.such.task", (), given)[1] == {"a": [{name: SHOWN, "b": 1}]}
    assert hidden({name: {"deep": 1}}) == {name: SHOWN}


def test_other_names_are_shown() -> None:
    """A key of a row is no secret, nor is a missing value."""
    given = {"key": "a", "keys": [1], "tokenless": None, "password": None}
    assert hidden(given) == given


def test_the_names_are_a_setting(settings: Any) -> None:
    """An empty list hides by type only."""
    settings.FAIRSHIFT = {"HIDDEN_NAMES": ["*iban*"]}
    assert hidden({"password": 1, "IBAN": 2}) == {"password": 1, "IBAN": SHOWN}


def test_what_comes_back_as_it_was_shown_is_kept() -> None:
    """A form is saved without knowing the secret; a new value replaces it."""
    stored = {"pin": "1234", "list": [{"token": "t"}, 2], "user": "ann"}
    shown = {"pin": SHOWN, "list": [{"token": SHOWN}, 3], "user": "bob"}
    assert restored(shown, stored) == {"pin": "1234", "list": [{"token": "t"}, 3], "user": "bob"}
    assert restored({"pin": "new"}, stored) == {"pin": "new"}
