"""Import of jobs from a CSV or JSON file: all or none; each wrong row is listed by number."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import transaction

from jobs.catalog.registry import offered
from jobs.core.errors import BatchError, OptionError
from jobs.definitions import upsert
from jobs.definitions.fields import FIELDS
from jobs.definitions.spec import fault_of, unknown_fields
from jobs.definitions.upsert import Upserted
from jobs.models import AuditEntry, Owner

DELIMITERS: Final = ",;\t"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
COLUMNS: Final = (*FIELDS, "arguments")


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a field of a row, or (None) of the whole file."""

    row: int | None
    field: str
    problem: str


@dataclass(frozen=True, slots=True)
class Rows:
    """The jobs in a file, each with its row number, and the problems in reading it."""

    jobs: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Report:
    """What an import does; with problems, nothing."""

    rows: int
    problems: Sequence[Problem]
    upserted: Upserted | None = None

    @property
    def wrong_rows(self) -> int:
        return len({problem.row for problem in self.problems})


def preview_import(content: bytes, *, owner: Owner) -> Report:
    """Return what an import would do now, without doing it."""
    return _imported(content, owner=owner, is_kept=False)


def import_jobs(content: bytes, *, owner: Owner, actor: Any, name: str) -> Report:
    """Upsert the owner's jobs from a file, all or nothing; audited."""
    with transaction.atomic():
        report = _imported(content, owner=owner, is_kept=True)
        if report.upserted is not None:
            counts = {each: getattr(report.upserted, each) for each in Upserted.__slots__}
            AuditEntry.write("import jobs", on=owner, actor=actor, file=name, **counts)
    return report


def _imported(content: bytes, *, owner: Owner, is_kept: bool) -> Report:
    rows = read_rows(content)
    problems = [*rows.problems, *_not_offered(rows)]
    numbers = [number for number, _ in rows.jobs]
    count = len({*numbers, *(problem.row for problem in rows.problems if problem.row)})
    try:
        with transaction.atomic():
            # Also with problems: the upsert finds the others. Then nothing is stored.
            upserted = upsert.upsert_jobs(owner, [job for _, job in rows.jobs])
            transaction.set_rollback(not is_kept or bool(problems))
    except BatchError as error:
        problems += [Problem(numbers[at], *fault_of(fault)) for at, fault in error.problems]
    except OptionError as error:
        problems.append(Problem(None, error.option, error.problem))
    if problems:
        problems.sort(key=lambda problem: problem.row or 0)
        return Report(count, problems)
    return Report(count, (), upserted)


def _not_offered(rows: Rows) -> Iterator[Problem]:
    """Yield a problem for each task that is not offered to users, as in the form of a job."""
    names = {item.name for item in offered()}
    for number, job in rows.jobs:
        task = job.get("task") if isinstance(job, Mapping) else None
        if isinstance(task, str) and task and task not in names:
            yield Problem(number, "task", f"{task!r:.200} is not on offer")


def read_rows(content: bytes) -> Rows:
    """Return the jobs in a file of JSON (a list of objects) or CSV (a header, then a row a job)."""
    try:
        # Spreadsheets write a byte order mark.
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problem = f"is not UTF-8 in line {line}; save it as UTF-8"
        return Rows(problems=[Problem(None, "file", problem)])
    if not text.strip():
        return Rows(problems=[Problem(None, "file", "is empty")])
    return _json_rows(text) if text.lstrip()[0] in "[{" else _csv_rows(text)


def _json_rows(text: str) -> Rows:
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        problem = "is nested too deeply" if isinstance(error, RecursionError) else str(error)
        return Rows(problems=[Problem(None, "file", f"is not the JSON of jobs: {problem}"[:300])])
    if isinstance(found, dict) and set(found) == {"jobs"}:
        found = found["jobs"]
    if not isinstance(found, list):
        return Rows(problems=[Problem(None, "file", "is JSON, but not a list of jobs: [{…}, …]")])
    return Rows(jobs=list(enumerate(found, 1)))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        [(twice, _times)] = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{twice!r:.100} is given twice in one object")
    for name in made:
        if not name.isascii() and _SURROGATE.search(name):
            raise ValueError(f"{name!a:.100} holds a lone surrogate, which is no character")
    return made


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _csv_rows(text: str) -> Rows:
    rows = Rows()
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    header: list[str] | None = None
    number = 0
    try:
        for number, cells in enumerate(reader, 1):
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = [cell.strip() for cell in cells]
                rows.problems.extend(_header_problems(header, number))
                if rows.problems:
                    return rows
            else:
                _add_row(rows, number, header, cells)
    except csv.Error as error:
        # A quote is missing: the rest of the file cannot be split into rows.
        problem = f"cannot be read from here: {error}"
        rows.problems.append(Problem(number + 1, "row", problem))
    return rows


def _delimiter(text: str) -> str:
    """Return the delimiter of the header: it depends on the locale of the spreadsheet program."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return max(DELIMITERS, key=first.count)


def _header_problems(header: Sequence[str], number: int) -> Iterator[Problem]:
    for name in sorted({"key", "task"} - set(header)):
        yield Problem(number, name, "is no column of this file; the first row names the columns")
    for name in sorted(name for name, times in Counter(header).items() if times > 1):
        yield Problem(number, name, "is a column twice")
    for fault in unknown_fields(name for name in header if name):
        yield Problem(number, *fault_of(fault))


def _add_row(rows: Rows, number: int, header: Sequence[str], cells: Sequence[str]) -> None:
    if any(cells[len(header) :]):
        problem = f"has {len(cells)} cells, the header has {len(header)}"
        rows.problems.append(Problem(number, "row", problem))
        return
    job: dict[str, Any] = {}
    for name, cell in zip(header, cells, strict=False):
        # An empty cell takes the default.
        if name and (text := cell.strip()):
            try:
                job[name] = _READERS.get(name, str)(text)
            except JsonCellError as error:
                rows.problems.append(Problem(number, name, str(error)))
                return
            except (ValueError, KeyError):
                # The check of the field reports it.
                job[name] = text
    rows.jobs.append((number, job))


class JsonCellError(Exception):
    """A cell that must hold JSON does not."""


def _mapping(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except RecursionError:
        raise JsonCellError("is nested too deeply") from None
    except ValueError as error:
        raise JsonCellError(f"is not JSON: {error}"[:300]) from None
    if not isinstance(found, dict):
        raise JsonCellError('is JSON, but no object, such as {"host": "fw-1"}')
    return found


def _names(text: str) -> list[str]:
    return text.replace(",", " ").replace(";", " ").split()


def _number(text: str) -> float:
    # Python also reads "1_000", "nan" and other alphabets' digits.
    if not text.isascii() or not text.replace(".", "", 1).isdigit() or len(text) > 30:
        raise ValueError(text)
    return float(text) if "." in text else int(text)


_FLAGS: Final = {
    **dict.fromkeys(("true", "yes", "1"), True),
    **dict.fromkeys(("false", "no", "0"), False),
}
_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    **dict.fromkeys(("arguments", "labels"), _mapping),
    **dict.fromkeys(("retry_on", "give_up_on"), _names),
    **dict.fromkeys(("enabled", "smooth"), lambda text: _FLAGS[text.lower()]),
    **dict.fromkeys(
        (
            *("interval_minutes", "interval_seconds", "misfire_cap", "misfire_deadline_seconds"),
            *("priority", "max_attempts", "backoff_seconds", "backoff_cap_seconds"),
            *("soft_time_limit_seconds", "time_limit_seconds", "deadline_seconds"),
        ),
        _number,
    ),
}
