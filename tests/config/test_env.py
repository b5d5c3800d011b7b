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


READERS: dict[str, Callable[[Environment], Any]] = {
    "text": lambda env: env.text("LIMIT"),
    "off": lambda env: env.boolean("LIMIT", default=False),
    "on": lambda env: env.boolean("LIMIT", default=True),
    "whole": lambda env: env.setting("LIMIT", Rule(7, Kind.WHOLE, -3, 8)),
    "seconds": lambda env: env.setting("LIMIT", SECONDS),
    "choice": lambda env: env.choice("LIMIT", allowed=FORMS, default="console"),
    "words": lambda env: env.words("LIMIT"),
    "networks": lambda env: env.setting("LIMIT", Rule((), Kind.NETWORKS)),
    "folder": lambda env: env.setting("LIMIT", Rule("", Kind.FOLDER)),
    "url": lambda env: env.url("LIMIT", schemes=SCHEMES),
}
SEVERAL_URLS = "redis://u:p@a:1,b:2/0;redis://c:3/0"


def environment(value: str) -> Environment:
    """Return an environment in which only LIMIT is set."""
    return Environment({"LIMIT": value})


@pytest.mark.parametrize(
    ("reader", "given", "expected"),
    [
        ("text", " text ", "text"),
        ("off", "ON", True),
        ("on", "no", False),
        ("whole", "-3", -3),
        ("whole", "", 7),
        ("seconds", "0.5", 0.5),
        ("choice", "Json", "json"),
        ("words", "a, b,,", ["a", "b"]),
        ("folder", "/srv/x", "/srv/x"),
        ("url", "rediss://h/0", "rediss://h/0"),
        ("url", SEVERAL_URLS, SEVERAL_URLS),
    ],
)
def test_good_value_is_read(reader: str, given: str, expected: object) -> None:
    """Values are trimmed and converted; an empty variable counts as not given."""
    assert READERS[reader](environment(given)) == expected


@pytest.mark.parametrize(
    ("reader", "given", "allowed"),
    [
        ("off", "maybe", "one of 1, true"),
        ("whole", "9", "a whole number from -3 up to 8."),
        ("whole", "1.5", "a whole number from -3 up to 8."),
        ("networks", "10.0.0.0/8, x", "a list of networks"),
        ("seconds", "nan", "a number of seconds"),
        ("seconds", "-1", "a number of seconds"),
        ("choice", "jsno", "one of json, console. Did you mean json?"),
        ("folder", "x/y", "an absolute path"),
    ],
)
def test_bad_value_is_refused_by_name(reader: str, given: str, allowed: str) -> None:
    """The refusal names the variable, repeats the value and says what is allowed."""
    with pytest.raises(ImproperlyConfigured) as refusal:
        READERS[reader](environment(given))
    assert str(refusal.value).startswith(f"LIMIT is {given!r}, but must be {allowed}")


def test_a_required_value_that_is_missing_is_refused_by_name() -> None:
    """An empty variable is a missing one."""
    with pytest.raises(ImproperlyConfigured, match="LIMIT is required but not set"):
        READERS["text"](environment(""))


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
