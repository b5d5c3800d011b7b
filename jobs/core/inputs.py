"""Checks of callers' inputs: each raises OptionError with the field and its limit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Final

from jobs.core.errors import OptionError

KEY_LIMIT: Final = 200
LOCK_LIMIT: Final = 200
LABELS_LIMIT: Final = 32
LABEL_LIMIT: Final = 200
REASON_LIMIT: Final = 500
NOT_IN_NAMES: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Controls, and ends of lines and paragraphs."""


def near_hint(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean X?" with the nearest known name; empty if none is near."""
    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def refuse_text(option: str, value: Any, *, most: int) -> None:
    """Raise OptionError unless the value is text of `most` characters that PostgreSQL can store."""
    if not isinstance(value, str) or len(value) > most or "\x00" in value:
        raise OptionError(option, f"is text of at most {most} characters, without NUL")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise OptionError(option, "holds a lone surrogate, which is no character") from None


def refuse_name(option: str, value: Any, *, most: int) -> None:
    """Raise OptionError unless the value is one line of text of `most` characters.

    Terminals, logs and lists show names: a control character in one could say something else there.
    """
    refuse_text(option, value, most=most)
    if found := NOT_IN_NAMES.search(value):
        raise OptionError(option, f"holds the control character U+{ord(found[0]):04X}")


def refuse_naive(option: str, value: Any) -> None:
    """Raise OptionError unless the value is a datetime with a time zone."""
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise OptionError(option, "is a datetime with a time zone")


def refuse_labels(labels: Any) -> None:
    """Raise OptionError unless the labels are a small mapping of short texts to short texts."""
    if not isinstance(labels, Mapping) or len(labels) > LABELS_LIMIT:
        raise OptionError(
            "labels",
            f"is a mapping of at most {LABELS_LIMIT} names to texts, each of both of at most"
            f" {LABEL_LIMIT} characters",
        )
    for name, value in labels.items():
        # The name first: the error about the value contains it.
        refuse_name("labels", name, most=LABEL_LIMIT)
        refuse_name(f"labels.{name}", value, most=LABEL_LIMIT)


def in_utc(moment: datetime) -> datetime:
    """Return the moment in UTC: PostgreSQL refuses offsets of 16 hours and more.

    One that has no year in UTC becomes the nearest that has one, for the limits of its field.
    """
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        year = 1 if moment.year == 1 else 9999
        return datetime(year, 1, 1, tzinfo=UTC)
