"""The policies that a task may declare with `@job`, checked at import. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from jobs.catalog.run_log.lines import LEVELS
from jobs.core.errors import OptionError
from jobs.core.inputs import near_hint

MONTH_SECONDS: Final = 30 * 86_400
LONGEST_STORED: Final = 1e9
"""Most seconds in the policy of a row, which the ORM may have written without a check."""
NAMES_LIMIT: Final = 100
"""Most names in `retry_on`, and in `give_up_on`."""
NAME_LIMIT: Final = 255
"""Most characters of each of them."""


def whole_number(minimum: int, maximum: int) -> Callable[[str, Any], int]:
    def checked(option: str, value: Any) -> int:
        # A bool is an int in Python.
        if type(value) is not int or not minimum <= value <= maximum:
            raise OptionError(option, f"is a whole number from {minimum} to {maximum}")
        return value

    return checked


def _seconds(minimum: float) -> Callable[[str, Any], float]:
    def checked(option: str, value: Any) -> float:
        # Tests what is allowed, because NaN fails every comparison.
        if type(value) not in (int, float) or not minimum <= value <= MONTH_SECONDS:
            raise OptionError(option, f"is a number of seconds from {minimum:g} to {MONTH_SECONDS}")
        return float(value)

    return checked


def _error_names(option: str, value: Any) -> tuple[str, ...]:
    """Return names of exception classes, given as classes or names."""
    given: Collection[Any] = value if isinstance(value, (list, tuple, set, frozenset)) else (value,)
    if len(given) > NAMES_LIMIT:
        raise OptionError(option, f"holds at most {NAMES_LIMIT} names; these are {len(given):,}")
    return tuple(_error_name(option, item) for item in given)


def _error_name(option: str, item: Any) -> str:
    is_class = isinstance(item, type) and issubclass(item, BaseException)
    name = f"{item.__module__}.{item.__qualname__}" if is_class else item
    # The length first: checking each part of a text of megabytes is slow.
    if isinstance(name, str) and len(name) > NAME_LIMIT:
        raise OptionError(
            option, f"holds names of at most {NAME_LIMIT} characters; one has {len(name):,}"
        )
    if isinstance(name, str) and (is_class or all(map(str.isidentifier, name.split(".")))):
        return name
    raise OptionError(option, "holds exception classes, or their names with or without module")


def _level(option: str, value: Any) -> str:
    if value not in LEVELS:
        raise OptionError(option, f"is one of: {', '.join(LEVELS)}")
    return str(value)


CHECKS: Final[Mapping[str, Callable[[str, Any], Any]]] = MappingProxyType(
    {
        "priority": whole_number(0, 9),
        "max_attempts": whole_number(1, 100),
        "backoff_seconds": _seconds(0),
        "backoff_cap_seconds": _seconds(0),
        "retry_on": _error_names,
        "give_up_on": _error_names,
        "soft_time_limit_seconds": _seconds(0.1),
        "time_limit_seconds": _seconds(0.1),
        "deadline_seconds": _seconds(0.1),
        "log_level": _level,
    }
)


def checked_policy(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return options as stored: numbers, tuples of names. Raises OptionError with the limits."""
    policy = {option: CHECKS[option](option, value) for option, value in options.items()}
    soft, hard = policy.get("soft_time_limit_seconds"), policy.get("time_limit_seconds")
    if soft is not None and hard is not None and soft >= hard:
        raise OptionError(
            "soft_time_limit_seconds", f"is less than time_limit_seconds, which is {hard:g}"
        )
    return MappingProxyType(policy)


@lru_cache(maxsize=1_000)
def read_policy(text: str) -> Mapping[str, Any]:
    """Return the policy of a run's row, read-only; raise ValueError if raw SQL has spoilt it.

    Cached: most rows of a batch have the same.
    """
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"policy is no object: {text:.80}")  # noqa: TRY004  one for all faults
    for option, value in found.items():
        if option in ("retry_on", "give_up_on"):
            is_good = isinstance(value, list) and all(isinstance(one, str) for one in value)
        elif option.endswith("_seconds"):
            is_good = type(value) in (int, float) and 0 <= value <= LONGEST_STORED
        else:
            continue
        if not is_good:
            raise ValueError(f"policy.{option} is {value!r:.80}")
    return MappingProxyType(found)


def refuse_unknown(options: Iterable[str], *, known: Iterable[str]) -> None:
    """Raise OptionError for the first unknown option, with the nearest known name."""
    names = set(known)
    for option in options:
        if option not in names:
            raise OptionError(option, f"is unknown{near_hint(option, names)}")
