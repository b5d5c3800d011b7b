r"""Files of the archive: one or more for each day, gzipped lines of JSON. Knows no database.

The first line names the day. Then comes one line for each run, with all its columns, its attempts,
its log and its owner's slug. PostgreSQL makes the JSON: bytes are hex after `\x`. Encrypted columns
stay encrypted. The last line has counts and the SHA-256 of all lines before it. A file without this
last line is not complete.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final, cast
from uuid import UUID

VERSION: Final = 1
LEVEL: Final = 4
"""gzip's level: files are a fifth larger than at level 9, and take a quarter of the time."""
_PART: Final = ".part"


class ArchiveError(Exception):
    """A file could not be written, or is damaged; the message names it and the reason."""


@dataclass(frozen=True, slots=True)
class Written:
    """A complete file: name below the folder, size in bytes, SHA-256, and its counts."""

    name: str
    number: int
    size_bytes: int
    sha256: str
    run_count: int
    attempt_count: int


@dataclass(frozen=True, slots=True)
class Line:
    """One run: its row and its attempts as texts of JSON, and its owner's slug."""

    run: str
    attempts: str | None
    attempt_count: int
    owner: str | None
    logs: str | None = None

    @property
    def text(self) -> str:
        # PostgreSQL breaks the lines of a list.
        attempts, logs = ((some or "[]").replace("\n", "") for some in (self.attempts, self.logs))
        owner = json.dumps(self.owner)
        rows = f'"run": {self.run}, "attempts": {attempts}, "logs": {logs}'
        return f'{{"owner": {owner}, {rows}}}\n'


def file_name(day: date, number: int) -> str:
    """Return the name of a part of a day, below the folder."""
    part = f".{number}" if number > 1 else ""
    return f"{day:%Y}/{day:%Y-%m-%d}{part}.ndjson.gz"


def write(folder: Path, day: date, *, number: int, lines: Iterable[Line]) -> Written | None:
    """Write a file; return it when it is on disk under its name. None if there is no line.

    If a file of that number exists, the next free number is used. Raises ArchiveError.
    """
    try:
        return _write(folder, day, number, lines)
    except OSError as error:
        reason = error.strerror or str(error)
        where = error.filename or folder
        raise ArchiveError(f"The archive cannot be written: {where}: {reason}.") from error


def remove_incomplete(folder: Path) -> None:
    """Remove files that a killed process has not completed."""
    with suppress(OSError):
        for path in folder.glob(f"*/*{_PART}"):
            path.unlink()


def files_of(folder: Path, day: date) -> list[Path]:
    """Return the files of a day, the newest first."""
    found = folder.glob(f"{day:%Y}/{day:%Y-%m-%d}*.ndjson.gz")
    return sorted(found, key=lambda path: (len(path.name), path.name), reverse=True)


def all_files(folder: Path) -> list[Path]:
    """Return all complete files, the oldest day first."""
    return sorted(folder.glob("[0-9][0-9][0-9][0-9]/*.ndjson.gz"))


def find(folder: Path, run_id: UUID, day: date) -> tuple[dict[str, Any], Path] | None:
    """Return the newest line of a run, and its file; raise ArchiveError for a damaged file."""
    wanted = str(run_id).encode()
    for path in files_of(folder, day):
        for line in _lines(path):
            if wanted in line:
                found = parsed(line)
                if found.get("run", {}).get("id") == str(run_id):
                    return found, path
    return None


def parsed(line: str | bytes) -> dict[str, Any]:
    """Return a line as it was written."""
    found: dict[str, Any] = json.loads(line)
    return found


def verify(path: Path) -> int:
    """Return how many runs a file has; raise ArchiveError if it is damaged or not complete."""
    digest, count, last = hashlib.sha256(), 0, b""
    for line in _lines(path):
        if last:
            digest.update(last)
            count += 1
        last = line
    try:
        end = json.loads(last)["end"]
    except (ValueError, KeyError, TypeError):
        raise ArchiveError(f"{path} is not complete: its last line is missing.") from None
    if (end["runs"], end["sha256"]) != (count - 1, digest.hexdigest()):
        raise ArchiveError(f"{path} is damaged: its lines are not those that were written.")
    return int(end["runs"])


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path) as lines:
            yield from lines
    except (OSError, EOFError) as error:
        raise ArchiveError(f"{path} cannot be read: {error}.") from error


class _Counting:
    """A file that counts and digests what is written to it."""

    def __init__(self, raw: Any) -> None:
        self.raw, self.size, self.digest = raw, 0, hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.size += len(data)
        self.digest.update(data)
        self.raw.write(data)
        return len(data)

    def flush(self) -> None:
        self.raw.flush()


def _write(folder: Path, day: date, number: int, lines: Iterable[Line]) -> Written | None:
    first = next(source := iter(lines), None)
    if first is None:
        return None
    while (path := folder / file_name(day, number)).exists():
        number += 1
    _make_folder(path.parent)
    temporary = path.with_name(path.name + _PART)
    run_count = attempt_count = 0
    with temporary.open("wb") as raw:
        file, digest = _Counting(raw), hashlib.sha256()
        with gzip.GzipFile(
            fileobj=cast("BinaryIO", file), mode="wb", compresslevel=LEVEL
        ) as packed:

            def put(text: str) -> None:
                data = text.encode()
                digest.update(data)
                packed.write(data)

            put(f'{{"fairshift": {VERSION}, "day": "{day}", "part": {number}}}\n')
            for line in chain([first], source):
                put(line.text)
                run_count += 1
                attempt_count += line.attempt_count
            counts = {"runs": run_count, "attempts": attempt_count}
            packed.write(json.dumps({"end": {**counts, "sha256": digest.hexdigest()}}).encode())
            packed.write(b"\n")
        raw.flush()
        os.fsync(raw.fileno())
    temporary.rename(path)
    _sync(path.parent)
    name = path.relative_to(folder).as_posix()
    return Written(name, number, file.size, file.digest.hexdigest(), run_count, attempt_count)


def _make_folder(folder: Path) -> None:
    """Make the folder of a year; the archive's own folder must be there."""
    if not folder.exists():
        folder.mkdir()
        _sync(folder.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
