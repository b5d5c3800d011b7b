"""Lines for terminals: characters that a terminal would obey are shown as escapes."""

from __future__ import annotations

import sys
from typing import Final, TextIO
from unicodedata import category

OBEYED: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Controls, marks of direction and other formats, surrogates, ends of lines and paragraphs."""


def printable(line: str) -> str:
    """Return a line in which each obeyed character is an escape, as JSON and Python write it."""
    if line.isascii() and line.isprintable():
        return line
    return "".join(_escaped(letter) if category(letter) in OBEYED else letter for letter in line)


def say(line: str, *, file: TextIO | None = None, flush: bool = False) -> None:
    """Print one line to a file, by default to the standard output."""
    print(printable(line), file=file or sys.stdout, flush=flush)


def _escaped(letter: str) -> str:
    code = ord(letter)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
