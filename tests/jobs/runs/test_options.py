"""jobs/runs/options.py: every option out of its limits is refused by name, with the limit."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from jobs.core.errors import OptionError
from jobs.runs.options import Options, refuse_far

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("option", "value", "limit"),
    [
        ("priority", 10, "0 to 9"),
        ("priority", -1, "0 to 9"),
        ("max_attempts", 0, "1 to 100"),
        ("max_attempts", 10**9, "1 to 100"),
        ("backoff_seconds", -1, "from 0 to 2592000"),
        ("backoff_cap_seconds", float("inf"), "from 0 to 2592000"),
        ("deadline_seconds", 0, "from 0.1"),
        ("soft_time_limit_seconds", "60", "from 0.1"),
        ("time_limit_seconds", float("nan"), "from 0.1"),
        ("retry_on", [42], "exception classes"),
        ("give_up_on", "no name", "exception classes"),
        ("countdown", -1, "0 to 31622400 seconds"),
        ("countdown", 1e18, "0 to 31622400 seconds"),
        ("countdown", float("nan"), "0 to 31622400 seconds"),
        ("countdown", True, "0 to 31622400 seconds"),
        ("countdown", "soon", "0 to 31622400 seconds"),
        ("eta", NOW.replace(tzinfo=None), "with a time zone"),
        ("eta", "2026-03-01T12:00:00Z", "with a time zone"),
        ("labels", ["site"], "at most 32"),
        ("labels", None, "at most 32"),
        ("labels", {str(n): "" for n in range(33)}, "both of at most 200 characters"),
        ("labels", {"site": 7}, "at most 200 characters"),
        ("labels", {7: "site"}, "at most 200 characters"),
        ("labels", {"x" * 201: ""}, "at most 200 characters"),
        ("labels", {"site": "x" * 201}, "at most 200 characters"),
        ("queue", "x" * 101, "at most 100 characters"),
        ("queue", None, "at most 100 characters"),
        ("target", "x" * 201, "at most 200 characters"),
        ("lock", "x" * 201, "at most 200 characters"),
        ("lock", 7, "at most 200 characters"),
        ("idempotency_key", "x" * 201, "at most 200 characters"),
        ("idempotency_key", b"key", "at most 200 characters"),
        ("ignore_result", "no", "True or False"),
    ],
)
def test_an_option_out_of_its_limits_is_refused(option: str, value: Any, limit: str) -> None:
    """The error names the option and what it may be."""
    with pytest.raises(OptionError) as caught:
        Options(**{option: value})
    assert caught.value.option.partition(".")[0] == option
    assert limit in caught.value.problem


@pytest.mark.parametrize("bad", ["nul \x00 inside", "a lone \ud800 surrogate"])
@pytest.mark.parametrize("option", ["queue", "target", "lock", "idempotency_key", "labels"])
def test_what_no_database_holds_is_refused_in_every_text(option: str, bad: str) -> None:
    """NUL and lone surrogates; and the error itself can be written to a log."""
    for value in [{bad: "x"}, {"x": bad}] if option == "labels" else [bad]:
        with pytest.raises(OptionError) as caught:
            Options(**{option: value})
        assert caught.value.option.startswith(option)
        assert str(caught.value).encode()


@pytest.mark.parametrize(
    "eta",
    [
        NOW + timedelta(days=366, seconds=1),
        NOW - timedelta(days=366, seconds=1),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    ],
)
def test_a_time_more_than_a_year_away_is_refused(eta: datetime) -> None:
    """In either direction: it is a mistake, and PostgreSQL's years go where Python's do not."""
    with pytest.raises(OptionError, match=r"eta: is at most 366 days"):
        refuse_far(eta, now=NOW)
    refuse_far(NOW + timedelta(days=366), now=NOW)
