"""The parts of `manage.py history`: each returns facts for JSON, and lines for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from django.core.management.base import CommandError

from fleet import counted
from jobs.core.conf import setting
from jobs.system.retention import archive, reads, rounds
from jobs.system.retention.parts import archive_folder

Answer = tuple[Any, Iterator[str]]
LEAVES: Final = ("leaves", "leaves, failed")
DAYS: Final = (
    *("RUN_DAYS", "FAILED_RUN_DAYS", "ATTEMPT_DAYS", "KEY_DAYS", "MISSED_DAYS", "AUDIT_DAYS"),
    *("WORKER_DAYS", "ROLLUP_DAYS"),
)


def status(_given: Mapping[str, Any]) -> Answer:
    found, folder = reads.status(), archive_folder()
    last = found.last
    facts = {
        "days": {name: setting(name) for name in DAYS},
        "archive_folder": None if folder is None else str(folder),
        "partitions": found.partitions,
        "bytes": found.bytes,
        "oldest_day": found.oldest,
        "removed_runs": found.removed_runs,
        "archived_files": found.archived_files,
        "archived_bytes": found.archived_bytes,
        "last_round": None if last is None else last.ended_at or last.began_at,
        "problem": "" if last is None else last.problem,
        "problem_since": None if last is None else last.problem_since,
    }

    def lines() -> Iterator[str]:
        for name in DAYS:
            yield f"{name:16} {counted(setting(name), 'day')}"
        yield f"archive          {facts['archive_folder'] or 'none'}"
        yield f"partitions       {found.partitions:,}, {_megabytes(found.bytes)}"
        yield f"removed          {counted(found.removed_runs, 'run')}"
        files = counted(found.archived_files, "file")
        yield f"archived         {files}, {_megabytes(found.archived_bytes)}"
        yield f"last round       {facts['last_round'] or 'none yet'}"
        if facts["problem"]:
            yield f"PROBLEM since {facts['problem_since']}: {facts['problem']}"

    return facts, lines()


def listed(given: Mapping[str, Any]) -> Answer:
    folder = archive_folder()
    if folder is None:
        raise CommandError("There is no archive: FAIRSHIFT_ARCHIVE_FOLDER is not set.")
    files: list[dict[str, Any]] = [
        {
            "file": path.relative_to(folder).as_posix(),
            "bytes": path.stat().st_size,
            **({"runs": archive.verify(path)} if given["verify"] else {}),
        }
        for path in archive.all_files(folder)
    ]

    def lines() -> Iterator[str]:
        for each in files:
            runs = f", {counted(each['runs'], 'run')}, complete" if "runs" in each else ""
            yield f"{each['file']}  {each['bytes']:,} bytes{runs}"
        yield f"{counted(len(files), 'file')} in {folder}"

    return {"folder": str(folder), "files": files}, lines()


def read(given: Mapping[str, Any]) -> Answer:
    found = reads.find_run(given["run"], owner=given["owner"])
    if found is None:
        raise CommandError(f"There is no run {given['run']}, neither as a row nor in the archive.")
    return found, iter(json.dumps(found, indent=2, ensure_ascii=False).splitlines())


def drop(given: Mapping[str, Any]) -> Answer:
    if given["dry_run"]:
        return _would_leave()
    found = rounds.remove_old_history()
    if found is None:
        raise CommandError("Another process removes old history now.")
    return found, (f"{count:,} {kind}" for kind, count in found.items())


def _would_leave() -> Answer:
    found = reads.would_leave()
    total: Counter[str] = sum(found.values(), Counter())

    def lines() -> Iterator[str]:
        for name, reasons in found.items():
            if reasons:
                words = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
                yield f"{name}: {words}"
        leaving = sum(total[reason] for reason in LEAVES)
        yield f"{counted(leaving, 'run')} of {total.total():,} would be removed."

    facts = {"partitions": found, "total": total, "leaving": sum(total[each] for each in LEAVES)}
    return facts, lines()


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:,.1f} MB"


PARTS: Final[dict[str, Callable[[Mapping[str, Any]], Answer]]] = {
    "status": status,
    "archive": listed,
    "read": read,
    "drop": drop,
}
