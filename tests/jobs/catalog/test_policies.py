"""Policies are refused where they are declared, by name and with their limits."""

from typing import Any

import pytest

from jobs.catalog.policies import checked_policy, refuse_unknown
from jobs.core.errors import OptionError


@pytest.mark.parametrize(
    ("option", "value", "limit"),
    [
        ("priority", 10, "from 0 to 9"),
        ("priority", True, "from 0 to 9"),
        ("max_attempts", 0, "from 1 to 100"),
        ("max_attempts", 1_000_000_000, "from 1 to 100"),
        ("max_attempts", 2.0, "from 1 to 100"),
        ("backoff_seconds", -1, "from 0 to 2592000"),
        ("backoff_seconds", float("nan"), "from 0 to 2592000"),
        ("time_limit_seconds", 0, "from 0.1 to 2592000"),
        ("time_limit_seconds", "60", "from 0.1 to 2592000"),
        ("retry_on", [int], "exception classes"),
        ("give_up_on", "no name", "exception classes"),
        ("retry_on", ["E"] * 101, "at most 100 names; these are 101"),
        ("give_up_on", ["E" * 256], "at most 255 characters; one has 256"),
        ("retry_on", ["E." * 1_000_000 + "E"], "one has 2,000,001"),
    ],
)
def test_values_out_of_limits_are_refused(option: str, value: Any, limit: str) -> None:
    """The error names the option and what it may be."""
    with pytest.raises(OptionError) as caught:
        checked_policy({option: value})
    assert caught.value.option == option
    assert limit in caught.value.problem


def test_an_unknown_option_is_refused_with_the_near_miss() -> None:
    """A misspelt option is never ignored in silence."""
    with pytest.raises(OptionError, match=r"max_attemps: is unknown; did you mean max_attempts?"):
        refuse_unknown(["max_attemps"], known=["max_attempts", "priority"])
    with pytest.raises(OptionError, match=r"xyz: is unknown$"):
        refuse_unknown(["xyz"], known=["max_attempts"])
