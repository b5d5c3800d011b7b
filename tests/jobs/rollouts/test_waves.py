"""jobs/rollouts/waves.py and deciding.py: sizes become counts, counts and time become decisions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobs import Waves
from jobs.core.errors import OptionError
from jobs.rollouts.deciding import Facts, Next, Released, decide
from jobs.rollouts.waves import Limit, counts_of, spread

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("sizes", "total", "counts"),
    [
        ([1, "1%", "10%", "100%"], 3_000, [1, 30, 300, 2_669]),
        ([1, "1%", "10%", "100%"], 1, [1]),
        ([1, "1%", "10%", "100%"], 12, [1, 1, 2, 8]),
        (["33.3%", "100%"], 10, [4, 6]),
        (["7%", "100%"], 100, [7, 93]),
        ([5, 5], 10, [5, 5]),
        ([5, 99], 10, [5, 5]),
    ],
)
def test_sizes_are_counts_or_parts_of_all_runs(
    sizes: list[int | str], total: int, counts: list[int]
) -> None:
    """Parts are rounded up; the last wave takes what is left; empty waves do not appear."""
    assert counts_of(sizes, total) == counts


def test_runs_in_no_wave_are_refused_with_the_counts() -> None:
    """The error says what the sizes mean for this submission."""
    with pytest.raises(OptionError, match=r"1, 30.*2,969 of 3,000") as refused:
        counts_of([1, "1%"], 3_000)
    assert refused.value.option == "waves.sizes"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"sizes": []}, "waves.sizes"),
        ({"sizes": "100%"}, "waves.sizes"),
        ({"sizes": [1] * 21}, "waves.sizes"),
        ({"sizes": [1, 0]}, "waves.sizes[1]"),
        ({"sizes": [True]}, "waves.sizes[0]"),
        ({"sizes": ["0%"]}, "waves.sizes[0]"),
        ({"sizes": ["101%"]}, "waves.sizes[0]"),
        ({"sizes": ["ten"]}, "waves.sizes[0]"),
        ({"sizes": [1.5]}, "waves.sizes[0]"),
        ({"stop_at": -1}, "waves.stop_at"),
        ({"stop_at": "100%"}, "waves.stop_at"),
        ({"stop_at": 0.05}, "waves.stop_at"),
        ({"between": timedelta(0)}, "waves.between"),
        ({"between": 367 * DAY}, "waves.between"),
        ({"between": "later"}, "waves.between"),
        ({"spread": "a\nb"}, "waves.spread"),
    ],
)
def test_bad_waves_are_refused_by_field(given: dict[str, Any], field: str) -> None:
    """Each error names the field."""
    with pytest.raises(OptionError) as refused:
        Waves(**{"sizes": ["100%"], **given})
    assert refused.value.option == field


@pytest.mark.parametrize(
    ("limit", "ended", "size", "allowed"),
    [
        (0, 5, 9, 0),
        (2, 5, 9, 2),
        ("5%", 1, 300, 1),
        ("5%", 2, 300, 1),
        ("5%", 39, 300, 1),
        ("5%", 40, 300, 2),
        ("5%", 300, 300, 15),
        ("5%", 1, 19, 0),
        ("7%", 1, 300, 1),
        ("0%", 100, 300, 0),
    ],
)
def test_a_limit_allows_as_many_failures(
    limit: int | str, ended: int, size: int, allowed: int
) -> None:
    """A part is of the ended runs; one early failure stops only a wave in which it is too many."""
    assert Limit.read(limit).allowed(ended=ended, size=size) == allowed


def test_spreading_takes_one_of_each_value_first() -> None:
    """In the order of the values' first places."""
    assert spread("aabcab") == [0, 2, 3, 1, 5, 4]


# --- what happens next --------------------------------------------------------------------


NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def wave(*, number: int = 1, failed: int = 0, ended: int = 3) -> Released:
    """A wave of 10 runs."""
    return Released(number=number, size=10, failed=failed, ended=ended, is_open=ended < 10)


DONE = {"released": [wave(ended=10)]}
EARLY = [wave(), wave(number=2, ended=10)]


@pytest.mark.parametrize(
    ("given", "following"),
    [
        ({}, None),
        ({"released": [wave(failed=1)]}, Next.STOP),
        ({"released": [wave(failed=1)], "limit": None}, None),
        ({"released": [wave(failed=1)], "limit": Limit(count=1)}, None),
        ({"released": [wave(failed=1)], "is_stopped": True}, None),
        (DONE, Next.RELEASE),
        ({**DONE, "has_open": False}, Next.END),
        ({"released": [wave(failed=1, ended=10)], "has_open": False}, Next.END),
        ({**DONE, "has_open": False, "is_stopped": True}, Next.END),
        ({**DONE, "between": MINUTE}, Next.WAIT),
        ({**DONE, "needs_approval": True}, Next.WAIT),
        ({**DONE, "needs_approval": True, "is_waiting": True}, None),
        ({**DONE, "between": MINUTE, "is_waiting": True, "next_at": NOW + MINUTE}, None),
        ({**DONE, "between": MINUTE, "is_waiting": True, "next_at": NOW}, Next.RELEASE),
        # A run of a wave that has ended is retried, and fails again.
        (
            {"released": [wave(failed=1, ended=10)], "is_waiting": True, "next_at": NOW},
            Next.STOP,
        ),
        ({"is_waiting": True, "next_at": NOW}, None),
        # The second wave was released before the first had ended.
        ({"released": EARLY}, None),
        ({"released": [wave(failed=1), EARLY[1]]}, Next.STOP),
        ({"released": [EARLY[0], wave(number=2, failed=1)]}, Next.STOP),
    ],
)
def test_what_is_next(given: dict[str, Any], following: Next | None) -> None:
    """Waves run until all their runs have ended, or too many of one have failed."""
    facts: dict[str, Any] = {
        "released": [wave()],
        "has_open": True,
        "is_stopped": False,
        "is_waiting": False,
        "limit": Limit(count=0),
        "between": None,
        "needs_approval": False,
        "next_at": None,
        "now": NOW,
    }
    assert decide(Facts(**{**facts, **given})) is following
