"""config/env.py: a bad value is refused by name, with the value and what is allowed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.env import Environment

SCHEMES = ("redis", "rediss")


def environment(value: str) -> Environment:
    """Return an environment in which only LIMIT is set."""
    return Environment({"LIMIT": value})


@pytest.mark.parametrize(
    ("given", "read", "expected"),
    [
        (" text ", lambda env: env.text("LIMIT"), "text"),
        ("ON", lambda env: env.boolean("LIMIT"), True),
        ("no", lambda env: env.boolean("LIMIT", default=True), False),
        ("-3", lambda env: env.integer("LIMIT", minimum=-3), -3),
        ("0.5", lambda env: env.seconds("LIMIT"), 0.5),
        ("Json", lambda env: env.choice("LIMIT", allowed=("json", "console")), "json"),
        ("a, b,,", lambda env: env.words("LIMIT"), ["a", "b"]),
        ("/srv/x", lambda env: env.path("LIMIT"), Path("/srv/x")),
        ("rediss://h/0", lambda env: env.url("LIMIT", schemes=SCHEMES), "rediss://h/0"),
        (
            "redis://u:p@a:1,b:2/0;redis://c:3/0",
            lambda env: env.url("LIMIT", schemes=SCHEMES),
            "redis://u:p@a:1,b:2/0;redis://c:3/0",
        ),
        ("", lambda env: env.integer("LIMIT", default=7), 7),
    ],
)
def test_good_value_is_read(
    given: str, read: Callable[[Environment], Any], expected: object
) -> None:
    """Values are trimmed and converted; an empty variable counts as not given."""
    assert read(environment(given)) == expected


@pytest.mark.parametrize(
    ("given", "read", "message"),
    [
        ("", lambda env: env.text("LIMIT"), "LIMIT is required but not set."),
        ("maybe", lambda env: env.boolean("LIMIT"), "LIMIT is 'maybe', but must be one of 1, true"),
        (
            "9",
            lambda env: env.integer("LIMIT", minimum=1, maximum=8),
            "LIMIT is '9', but must be a whole number from 1 up to 8.",
        ),
        ("1.5", lambda env: env.integer("LIMIT"), "LIMIT is '1.5', but must be a whole number."),
        (
            "nan",
            lambda env: env.seconds("LIMIT"),
            "LIMIT is 'nan', but must be a number of seconds",
        ),
        ("-1", lambda env: env.seconds("LIMIT"), "LIMIT is '-1', but must be a number of seconds"),
        (
            "jsno",
            lambda env: env.choice("LIMIT", allowed=("json", "console")),
            "LIMIT is 'jsno', but must be one of json, console. Did you mean json?",
        ),
        ("x/y", lambda env: env.path("LIMIT"), "LIMIT is 'x/y', but must be an absolute path."),
    ],
)
def test_bad_value_is_refused_by_name(
    given: str, read: Callable[[Environment], Any], message: str
) -> None:
    """The refusal names the variable, repeats the value and says what is allowed."""
    with pytest.raises(ImproperlyConfigured) as refusal:
        read(environment(given))
    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize(
    "given",
    [
        "http://u:sesame@h",
        "sesame",
        "redis://u:sesame@h:port/0",
        "redis://u:sesame@h:1,i:port/0",
        "redis://u:sesame@h:1/0;redis://u:sesame@h:port/0",
    ],
)
def test_refused_url_keeps_its_password(given: str) -> None:
    """No error repeats a URL: it may hold a password."""
    with pytest.raises(ImproperlyConfigured, match="LIMIT is not a") as refusal:
        environment(given).url("LIMIT", schemes=SCHEMES)
    assert "sesame" not in str(refusal.value)


def test_section_holds_only_what_is_given() -> None:
    """Defaults stay where they are known; a section has the given keys alone."""
    env = Environment({"FAIRSHIFT_A": "1", "FAIRSHIFT_B": ""})
    readers = {"A": env.integer, "B": env.integer, "C": env.text}
    assert env.section("FAIRSHIFT_", readers) == {"A": 1}


def test_unknown_variable_is_refused_with_the_near_miss() -> None:
    """A misspelt variable would be ignored in silence; it is an error that names the right one."""
    env = Environment({"FAIRSHIFT_LEASE_SECOND": "9", "OTHER": "1"})
    env.section("FAIRSHIFT_", {"LEASE_SECONDS": env.seconds})
    with pytest.raises(ImproperlyConfigured) as refusal:
        env.refuse_unknown("FAIRSHIFT_")
    assert str(refusal.value).startswith(
        "FAIRSHIFT_LEASE_SECOND is not a known variable."
        " Did you mean FAIRSHIFT_LEASE_SECONDS? Known are:"
    )
