"""jobs/conf.py: one dict of settings, whose misspelt keys are refused."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from jobs.conf import DEFAULTS, setting, unknown_settings


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


def test_asking_for_a_key_that_no_one_defined_is_a_mistake_in_the_code() -> None:
    """There is no silent None."""
    with pytest.raises(KeyError):
        setting("NO_SUCH_SETTING")
