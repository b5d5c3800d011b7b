"""jobs/catalog/redaction.py: some values are shown to no one, by their type or their name."""

from typing import Any

import pytest

from jobs import Secret, job
from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.redaction import SHOWN, hidden, hidden_arguments, restored
from jobs.catalog.registry import resolve
from jobs.core.errors import ArgumentError


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
        *("password", "db_password", "API-Key", "Authorization"),
        *("access_token", "client-secret", "Cookie"),
    ],
)
def test_a_value_is_hidden_by_its_name(name: str) -> None:
    """At any depth, also of a task that is not here any more, and of a result."""
    given = {"a": [{name: "x", "b": 1}]}
    assert hidden_arguments("no.such.task", (), given)[1] == {"a": [{name: SHOWN, "b": 1}]}
    assert hidden({name: {"deep": 1}}) == {name: SHOWN}


STORED = {"pin": "1234", "list": [{"token": "t"}, 2], "user": "ann"}


def kept(given: Any, *, may_keep: bool = False, is_same_task: bool = True) -> Any:
    """Return arguments that come back for a job of STORED."""
    return restored(given, STORED, task="tests.login", may_keep=may_keep, is_same_task=is_same_task)


def test_what_comes_back_as_it_was_shown_is_kept() -> None:
    """A form is saved without knowing the secret; all values may be given anew."""
    shown = {"pin": SHOWN, "list": [{"token": SHOWN}, 2], "user": "ann"}
    assert kept(shown) == STORED
    assert kept({"pin": "new"}) == {"pin": "new"}
    changed = shown | {"user": "bob"}
    assert kept(changed, may_keep=True) == STORED | {"user": "bob"}


BOTH = {"pin": SHOWN, "list": [{"token": SHOWN}, 2]}
KEEPS = {"may_keep": True}


@pytest.mark.parametrize(
    ("given", "options", "field"),
    [
        # Beside a change: it could be sent where the caller, who may not see it, sees it.
        ({**BOTH, "user": "bob"}, {}, "pin"),
        ({**BOTH, "pin": "1", "user": "ann"}, {}, "list.0.token"),
        ({**BOTH, "user": "ann", "more": 1}, {}, "pin"),
        ({"pin": SHOWN}, {}, "pin"),
        ({**BOTH, "user": "ann"}, {"is_same_task": False}, "pin"),
        # Where nothing was hidden, also by code: the dots would be stored.
        ({"user": SHOWN}, KEEPS, "user"),
        ({"list": SHOWN}, KEEPS, "list"),
        ({"list": [{"token": SHOWN}]}, KEEPS, "list.0.token"),
        ({"other": {"deep": [SHOWN]}}, KEEPS, "other.deep.0"),
        ({"password": ["a", SHOWN]}, KEEPS, "password.1"),
    ],
)
def test_a_hidden_value_does_not_come_back_elsewhere(
    given: Any, options: dict[str, bool], field: str
) -> None:
    """The error names the field."""
    with pytest.raises(ArgumentError) as refused:
        kept(given, **options)
    assert refused.value.field == field
