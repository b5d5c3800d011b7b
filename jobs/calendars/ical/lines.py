"""A file's lines, unfolded, each with its number as an editor shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from icalendar.parser import Contentline, unescape_backslash

from jobs.core.errors import IcalError

_END: Final = re.compile(rb"\r\n|\n|\r")
_NAME: Final = re.compile(r"([A-Za-z0-9-]+)[;:]")
_MARK: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class ContentLine:
    """An unfolded line: the number of its first part, its name and text."""

    number: int
    name: str
    whole: str

    @cached_property
    def parts(self) -> tuple[dict[str, str], str]:
        """The parameters, by their names in capitals, and the raw value; both read once."""
        bare = self.whole[len(self.name) :]
        if bare.startswith(":"):
            # Most lines have no parameters.
            return {}, bare[1:]
        try:
            _, parameters, value = Contentline(self.whole).raw_parts()
        except ValueError as error:
            problem = f"{self.name} has parameters that cannot be read; correct the line"
            raise IcalError(self.number, problem) from error
        found = {
            str(name).upper(): value if isinstance(value, str) else ",".join(value)
            for name, value in parameters.items()
        }
        return found, value

    @property
    def value(self) -> str:
        return self.parts[1].strip()

    @property
    def text(self) -> str:
        """The value as text, unescaped."""
        return str(unescape_backslash(self.value))


def lines(data: bytes) -> Iterator[ContentLine]:
    """Yield the unfolded lines of a file, without empty ones; raises IcalError with the line."""
    folded: list[bytes] = []
    first = 0
    for number, part in enumerate(_END.split(data.removeprefix(_MARK)), 1):
        if part[:1] in {b" ", b"\t"} and part.strip():
            if not folded:
                raise IcalError(number, "begins with a blank and continues no line; remove it")
            folded.append(part[1:])
        elif part.strip():
            if folded:
                yield _line(first, folded)
            folded, first = [part], number
    if folded:
        yield _line(first, folded)


def _line(number: int, folded: list[bytes]) -> ContentLine:
    # Unfolded before it is decoded: programs fold in the middle of a character.
    try:
        whole = b"".join(folded).decode()
    except UnicodeDecodeError as error:
        raise IcalError(number, "is not UTF-8; save the file as UTF-8") from error
    if "\x00" in whole:
        raise IcalError(number, "has a NUL character; remove it")
    match = _NAME.match(whole)
    if match is None or ":" not in whole:
        problem = f"{whole[:40]!a} is no line of iCalendar, which is NAME:value; remove it"
        raise IcalError(number, problem)
    return ContentLine(number, match[1].upper(), whole)
