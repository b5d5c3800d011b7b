"""jobs/core/conf.py: one dict of settings, whose misspelt keys and bad values are refused."""

from typing import Any

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from jobs.core.conf import DEFAULTS, RULES, setting, unknown_settings


def test_what_is_not_given_has_a_default(settings: Settings) -> None:
    """Also when the dict is missing altogether."""
    settings.FAIRSHIFT = {"MAX_ATTEMPTS": 7}
    assert (setting("MAX_ATTEMPTS"), setting("LEASE_SECONDS")) == (7, DEFAULTS["LEASE_SECONDS"])
    del settings.FAIRSHIFT
    assert setting("MAX_ATTEMPTS") == DEFAULTS["MAX_ATTEMPTS"]


def test_an_unknown_key_is_refused_with_the_near_miss(settings: Settings) -> None:
    """A misspelt setting would silently leave its default in force."""
    settings.FAIRSHIFT = {"LEASE_SECOND": 5, "COLOUR": "red"}
    assert unknown_settings() == [("LEASE_SECOND", "LEASE_SECONDS"), ("COLOUR", None)]
    with pytest.raises(
        ImproperlyConfigured, match=r"'LEASE_SECOND'\. Did you mean 'LEASE_SECONDS'"
    ):
        setting("MAX_ATTEMPTS")


BAD: list[tuple[str, Any, str]] = [
    ("LEASE_SECONDS", "30", "'30', but must be a number of seconds from 0.2 up to 86400"),
    ("LEASE_SECONDS", 0.1, "0.1, but must be a number of seconds from 0.2 up to 86400"),
    ("LEASE_SECONDS", float("nan"), "nan, but must be a number of seconds"),
    ("LEASE_SECONDS", None, "None, but must be a number of seconds"),
    ("BACKOFF_SECONDS", True, "True, but must be a number of seconds"),
    ("MAX_ATTEMPTS", 101, "101, but must be a whole number from 1 up to 100"),
    ("MAX_ATTEMPTS", 3.0, "3.0, but must be a whole number from 1 up to 100"),
    ("ALLOW_OTHER_POOLS", "no", "'no', but must be True or False"),
    ("CHILD_NICENESS", 20, "20, but must be a whole number from 0 up to 19"),
    ("OFFERED_TASKS", "reports.*", "'reports.*', but must be a list of words"),
    ("OFFERED_TASKS", [5], r"\[5\], but must be a list of words"),
    ("INBOX_ALLOWED", ["northwind"], r"\['northwind'\], but must be a list of OWNER:TASK"),
    ("METRICS_ADDRESSES", ["10.0.0.0/33"], r"\['10.0.0.0/33'\], but must be a list of networks"),
    ("METRICS_ADDRESSES", "10.0.0.0/8", "'10.0.0.0/8', but must be a list of networks"),
    ("INBOX_ALLOWED", ["northwind:"], r"\['northwind:'\], but must be a list of OWNER:TASK"),
    ("RUN_DAYS", 0, "0, but must be a whole number from 1 up to 3660"),
    ("FAILED_RUN_DAYS", 3661, "3661, but must be a whole number from 1 up to 3660"),
    ("AUDIT_DAYS", 89, "89, but must be a whole number from 90 up to 3660"),
    ("ARCHIVE_FOLDER", "history", "'history', but must be an absolute path, or empty"),
    ("ARCHIVE_FOLDER", None, "None, but must be an absolute path, or empty"),
    ("JOBS_QUEUE", "", "'', but must be a name of 1 to 100 characters"),
]


@pytest.mark.parametrize(("key", "value", "problem"), BAD)
def test_a_bad_value_is_refused(settings: Settings, key: str, value: Any, problem: str) -> None:
    """When the app gets ready, and at first use: with key, value and what is allowed."""
    settings.FAIRSHIFT = {key: value}
    problem = rf"^FAIRSHIFT\['{key}'\] is {problem}.*\.$"
    with pytest.raises(ImproperlyConfigured, match=problem):
        apps.get_app_config("jobs").ready()
    with pytest.raises(ImproperlyConfigured, match=problem):
        setting("MAX_ATTEMPTS")


@pytest.mark.parametrize("value", [None, "LEASE_SECONDS=5", [("LEASE_SECONDS", 5)]])
def test_what_is_no_dict_is_refused(settings: Settings, value: Any) -> None:
    """With what was given in its place."""
    settings.FAIRSHIFT = value
    with pytest.raises(ImproperlyConfigured, match=r"FAIRSHIFT is .*, but must be a dict"):
        setting("MAX_ATTEMPTS")
    assert unknown_settings() == []


def test_every_default_is_within_its_own_limits() -> None:
    """What we ship is allowed, and so are whole numbers of seconds and both limits."""
    for key, rule in RULES.items():
        assert rule.allows(rule.default), key
    lease = RULES["LEASE_SECONDS"]
    assert all(lease.allows(value) for value in (lease.least, 5, lease.most))
