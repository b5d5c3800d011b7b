"""The log of a run: lines of its attempts, as far as a caller may see them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, Final, NamedTuple
from uuid import UUID

from jobs.catalog.run_log.lines import LEVELS, Line, opened
from jobs.core import barrier, prepared
from jobs.core.crypto import Damaged, Place, UnknownKey
from jobs.core.phrases import phrase
from jobs.models import Run
from jobs.models.access import Access

CHUNKS_AT_ONCE: Final = 8
SCANNED: Final = 20_000
"""Lines that one page looks at: a filter may match few of them."""
_NEXT: Final = "runs/log_after"
_LAST: Final = "runs/log_before"


FILE_TYPES: Final = {
    "text": ("txt", "text/plain; charset=utf-8"),
    "ndjson": ("ndjson", "application/x-ndjson"),
}
"""The suffix and the media type of a log as a file."""
LINES_OF_A_PART: Final = 500


class Position(NamedTuple):
    """After which line of a log a page begins: the attempt's token, and the number of the line."""

    token: int = 0
    line: int = 0

    def __str__(self) -> str:
        return f"{self.token}.{self.line}"

    @classmethod
    def parsed(cls, text: str) -> Position:
        """Return the position of its text; raise ValueError for any other text."""
        token, line = map(int, text.split("."))
        if not (0 <= token < 2**31 and 0 <= line < 2**31):
            raise ValueError(text)
        return cls(token, line)


START: Final = Position()


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line, and how many lines before it were left out since the one before."""

    attempt: int
    place: Position
    at: datetime
    level: int
    logger: str
    text: str
    left_out: int = 0

    @property
    def number(self) -> int:
        """Its place in the log of the attempt, from 1."""
        return self.place.line

    @property
    def level_name(self) -> str:
        return logging.getLevelName(self.level)


class LogPage(NamedTuple):
    lines: Sequence[LogLine]
    after: Position
    """Where the next page begins."""
    has_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which lines: of the attempt with this number, of this level or above, with this text."""

    attempt: int | None = None
    level: str = "DEBUG"
    text: str = ""

    def has(self, line: Line) -> bool:
        is_level = line.level >= LEVELS[self.level] or self.level == "DEBUG"
        return is_level and self.text.lower() in line.text.lower()


def may_see(run: Run, access: Access) -> bool:
    """Say whether a caller sees the log of a run: who sees its arguments does."""
    return access.sees_arguments(run.owner_id)


def page_of(
    run: Run, *, after: Position = START, wanted: Wanted | None = None, most: int
) -> LogPage:
    """Return the next lines of a run's log, oldest first. The caller has asked `may_see`."""
    reading = _Reading(run, wanted or Wanted(), after)
    while True:
        rows = reading.query(_NEXT, after=reading.after)
        for row in rows:
            for number, line in _numbered(row, run.place):
                reading.take(row["token"], number, line)
                if len(reading.found) == most or reading.scanned == SCANNED:
                    return LogPage(reading.found, reading.after, has_more=True)
        if len(rows) < CHUNKS_AT_ONCE:
            return LogPage(reading.found, reading.after, has_more=False)


def last_lines(run: Run, *, wanted: Wanted | None = None, most: int) -> LogPage:
    """Return the last lines of a run's log; `has_more`: there are earlier ones."""
    reading = _Reading(run, wanted or Wanted(), None)
    chunks: list[tuple[int, list[tuple[int, Line]]]] = []
    first = Position(2**31 - 1, 0)
    matching = scanned = 0
    while rows := reading.query(_LAST, after=first):
        for row in rows:
            first = Position(row["token"], row["first_line"])
            chunks.append((row["token"], list(_numbered(row, run.place))))
            matching += sum(reading.wanted.has(line) for _number, line in chunks[-1][1])
            scanned += len(chunks[-1][1])
        if matching > most or scanned > SCANNED:
            break
    for token, lines in reversed(chunks):
        for number, line in lines:
            reading.take(token, number, line)
    has_more = len(reading.found) > most or bool(rows)
    return LogPage(reading.found[-most:], reading.after, has_more)


def last_texts(places: Mapping[UUID, Place], *, most: int) -> dict[UUID, list[str]]:
    """Return the last lines of some runs as texts, by the runs' ids: of their newest attempts.

    The caller has asked whether they may be seen.
    """
    rows = _read("runs/last_logs", {"runs": list(places)}) if places else []
    tokens = {row["run_id"]: row["token"] for row in rows}
    found: dict[UUID, list[str]] = {}
    for row in rows:
        if row["token"] == tokens[row["run_id"]]:
            lines = [line for _number, line in _numbered(row, places[row["run_id"]])]
            texts = [f"{logging.getLevelName(line.level)} {line.text}" for line in lines]
            found[row["run_id"]] = [*found.get(row["run_id"], ()), *texts][-most:]
    return found


def _now(query: Callable[[], LogPage]) -> LogPage:
    return query()


def as_text(line: LogLine) -> str:
    """Return a line as a text of its own, with the gap before it."""
    at = line.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    text = f"{at} {line.level_name:8} {line.logger}: {line.text}\n"
    gap = f"… {line.left_out} lines left out …\n" if line.left_out else ""
    return gap + text


def as_file(
    run: Run, *, wanted: Wanted, form: str, read: Callable[[Callable[[], LogPage]], LogPage] = _now
) -> Iterator[bytes]:
    """Yield the parts of a log as a file, as `FILE_TYPES` has them; `read` runs a query."""
    page = LogPage((), START, has_more=True)
    while page.has_more:
        query = partial(page_of, run, after=page.after, wanted=wanted, most=LINES_OF_A_PART)
        page = read(query)
        if page.lines:
            yield "".join(
                as_text(x) if form == "text" else _as_json(x) for x in page.lines
            ).encode()


def _as_json(line: LogLine) -> str:
    return json.dumps(as_facts(line)) + "\n"


def as_facts(line: LogLine) -> dict[str, Any]:
    """Return a line as JSON has it."""
    return {
        "attempt": line.attempt,
        "number": line.number,
        "at": line.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": line.level_name,
        "logger": line.logger,
        "text": line.text,
        "left_out": line.left_out,
    }


class _Reading:
    """Lines of a log in their order, and where the reader is."""

    def __init__(self, run: Run, wanted: Wanted, after: Position | None) -> None:
        self.wanted = wanted
        self.found: list[LogLine] = []
        self.scanned = 0
        self._after, self._gap = after, 0
        self._run = run
        only = None if wanted.attempt is None else self._token_of(wanted.attempt)
        self._given = {"run": run.id, "only": only}

    @cached_property
    def _numbers(self) -> dict[int, int]:
        """The numbers of the attempts, by their tokens. Most runs have no line, and need none."""
        ended = dict(self._run.attempts.values_list("token", "number"))
        return {self._run.token: self._run.attempt_number, **ended}

    def _token_of(self, attempt: int) -> int:
        return next((token for token, number in self._numbers.items() if number == attempt), -1)

    @property
    def after(self) -> Position:
        return self._after or START

    def query(self, statement: str, *, after: Position) -> list[dict[str, Any]]:
        asked = {**self._given, "token": after.token, "line": after.line, "most": CHUNKS_AT_ONCE}
        return _read(statement, asked)

    def take(self, token: int, number: int, line: Line) -> None:
        """Note a line if it is wanted, with the lines before it that were left out."""
        if self._after is not None:
            if (token, number) <= self._after:
                return
            self._gap += number - 1 - (self._after.line if token == self._after.token else 0)
        self._after = Position(token, number)
        self.scanned += 1
        if self.wanted.has(line):
            at = datetime.fromtimestamp(line.at, UTC)
            attempt = self._numbers.get(token, token)
            facts = (at, line.level, line.logger, line.text, self._gap)
            self.found.append(LogLine(attempt, self._after, *facts))
            self._gap = 0


def _read(statement: str, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Run a statement about the logs of runs that the caller has found.

    Behind the barrier, the policy of logs asks for each run once more: planning takes 8 ms.
    """
    with barrier.lifted():
        return prepared.run_over_all(statement, asked)


def _numbered(row: dict[str, Any], place: Place) -> Iterator[tuple[int, Line]]:
    """Yield the lines of a chunk with their numbers; one that says why, if they are unreadable."""
    named = {name: row[name] for name in ("key", "token", "first_line")}
    try:
        lines = opened(row["data"], **named, place=place)
    except (UnknownKey, Damaged, ValueError) as error:
        reason = str(phrase("cannot be read (%(reason)s)", reason=str(error)))
        last = row["first_line"] + row["line_count"] - 1
        yield last, Line(row["first_at"].timestamp(), logging.ERROR, "fairshift", reason)
        return
    yield from enumerate(lines, row["first_line"])
