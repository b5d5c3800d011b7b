"""config/env.py: a bad value is refused by name, with the value and what is allowed."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.env import Environment
from jobs.core.conf import Kind, Rule

SCHEMES = ("redis", "rediss")
FORMS = ("json", "console")
SECONDS = Rule(1.0, Kind.SECONDS, 0, 60)


def environment(value: str) -> Environment:
    """Return an environment in which only LIMIT is set."""
    return Environment({"LIMIT": value})


@pytest.mark.parametrize(
    ("given", "read", "expected"),
    [
        (" text ", lambda env: env.text("LIMIT"), "text"),
        ("ON", lambda env: env.boolean("LIMIT", default=False), True),
        ("no", lambda env: env.boolean("LIMIT", default=True), False),
        ("-3", lambda env: env.setting("LIMIT", Rule(0, Kind.WHOLE, -3)), -3),
        ("0.5", lambda env: env.setting("LIMIT", SECONDS), 0.5),
        ("Json", lambda env: env.choice("LIMIT", allowed=FORMS, default="console"), "json"),
        ("a, b,,", lambda env: env.words("LIMIT"), ["a", "b"]),
        ("/srv/x", lambda env: env.setting("LIMIT", Rule("", Kind.FOLDER)), "/srv/x"),
        ("rediss://h/0", lambda env: env.url("LIMIT", schemes=SCHEMES), "rediss://h/0"),
        (
            "redis://u:p@a:1,b:2/0;redis://c:3/0",
            lambda env: env.url("LIMIT", schemes=SCHEMES),
            "redis://u:p@a:1,b:2/0;redis://c:3/0",
        ),
        ("", lambda env: env.setting("LIMIT", Rule(7, Kind.WHOLE)), 7),
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
        (
            "maybe",
            lambda env: env.boolean("LIMIT", default=False),
            "LIMIT is 'maybe', but must be one of 1, true",
        ),
        (
            "9",
            lambda env: env.setting("LIMIT", Rule(1, Kind.WHOLE, 1, 8)),
            "LIMIT is '9', but must be a whole number from 1 up to 8.",
        ),
        (
            "1.5",
            lambda env: env.setting("LIMIT", Rule(1, Kind.WHOLE, 1, 8)),
            "LIMIT is '1.5', but must be a whole number from 1 up to 8.",
        ),
        (
            "10.0.0.0/8, x",
            lambda env: env.setting("LIMIT", Rule((), Kind.NETWORKS)),
            "LIMIT is '10.0.0.0/8, x', but must be a list of networks",
        ),
        (
            "nan",
            lambda env: env.setting("LIMIT", SECONDS),
            "LIMIT is 'nan', but must be a number of seconds",
        ),
        (
            "-1",
            lambda env: env.setting("LIMIT", SECONDS),
            "LIMIT is '-1', but must be a number of seconds",
        ),
        (
            "jsno",
            lambda env: env.choice("LIMIT", allowed=FORMS, default="console"),
            "LIMIT is 'jsno', but must be one of json, console. Did you mean json?",
        ),
        (
            "x/y",
            lambda env: env.setting("LIMIT", Rule("", Kind.FOLDER)),
            "LIMIT is 'x/y', but must be an absolute path",
        ),
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


def test_unknown_variable_is_refused_with_the_near_miss() -> None:
    """A misspelt variable would be ignored in silence; it is an error that names the right one."""
    env = Environment({"FAIRSHIFT_LEASE_SECOND": "9", "OTHER": "1"})
    env.section("FAIRSHIFT_", {"LEASE_SECONDS": SECONDS})
    with pytest.raises(ImproperlyConfigured) as refusal:
        env.refuse_unknown("FAIRSHIFT_")
    assert str(refusal.value).startswith(
        "FAIRSHIFT_LEASE_SECOND is not a known variable."
        " Did you mean FAIRSHIFT_LEASE_SECONDS? Known are:"
    )
