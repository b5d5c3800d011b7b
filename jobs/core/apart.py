"""One bad row does not stop a round: what a statement cannot do for many rows is done apart.

Raw SQL may write into a row what a statement about many rows cannot read or store: a text where a
number belongs, a number that overflows. Such a statement does nothing for any of them, and so it
would in each later round.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from django.db import DataError, IntegrityError, transaction

from fleet import may_log, one_line
from jobs.core import log_events

T = TypeVar("T")
R = TypeVar("R")

ROW_ERRORS: Final = (DataError, IntegrityError)
"""Errors that the content of rows causes. Others concern all rows."""
VALUE_ERRORS: Final = (*ROW_ERRORS, ValueError, ArithmeticError)
"""Those, and the errors of Python for a value that PostgreSQL cannot store."""


def apart(
    items: Sequence[T],
    act: Callable[[Sequence[T]], R],
    *,
    spoilt: Callable[[T, Exception], object],
    errors: tuple[type[Exception], ...] = ROW_ERRORS,
) -> list[R]:
    """Act on all items at once; if one of them prevents that, on halves, down to each by itself.

    `act` is a transaction or a savepoint: after an error, it has done nothing, or what may be
    repeated. `spoilt` gets an item that fails by itself with one of these errors, and the error.
    Returns what `act` returned for each part.
    """
    results = []
    parts = [items] if items else []
    while parts:
        part = parts.pop()
        try:
            results.append(act(part))
        except errors as error:
            if len(part) == 1:
                spoilt(part[0], error)
            else:
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]
    return results


def in_savepoint(act: Callable[[Sequence[T]], R]) -> Callable[[Sequence[T]], R]:
    """Run each call in a transaction of its own, or in a savepoint of the caller's."""

    def acted(items: Sequence[T]) -> R:
        with transaction.atomic():
            return act(items)

    return acted


@contextmanager
def leaving_out(what: str, logger: logging.Logger) -> Iterator[None]:
    """A block about one row: an error that its content causes is logged, and leaves it out.

    In a transaction, what writes in the block needs a savepoint inside it.
    """
    try:
        yield
    except (*VALUE_ERRORS, TypeError, LookupError) as error:
        name_spoilt(logger, what, error)


def name_spoilt(logger: logging.Logger, what: str, error: Exception) -> None:
    """Log that a row is left out, at most once a minute."""
    if may_log(what):
        text = f"{type(error).__name__}: {one_line(error)}"
        log_events.ROW_LEFT_OUT.log(logger, row=what, error=text, exc_info=error)
