"""Shared by commands: readers of numbers within limits, and the handler of SIGTERM."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Final, NoReturn

DIGITS: Final = 12
PORTS: Final = (1, 65_535)


def whole(minimum: int, maximum: int) -> Callable[[str], int]:
    """Return a reader of whole numbers within limits, both included."""

    def read(text: str) -> int:
        # Python raises another error for thousands of digits.
        is_number = text.isascii() and text.isdigit() and len(text) <= DIGITS
        if is_number and minimum <= int(text) <= maximum:
            return int(text)
        raise ArgumentTypeError(f"{text!r} is no whole number from {minimum} to {maximum}")

    return read


def number(minimum: float, maximum: float) -> Callable[[str], float]:
    """Return a reader of numbers within limits, both included."""

    def read(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = minimum - 1
        if not minimum <= found <= maximum:
            raise ArgumentTypeError(f"{text!r} is no number from {minimum:g} to {maximum:g}")
        return found

    return read


def interrupt(_number: int, _frame: object) -> NoReturn:
    """Handle SIGTERM as Ctrl-C."""
    raise KeyboardInterrupt
