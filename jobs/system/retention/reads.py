"""What would leave and why; and one run, from its row or from the archive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from typing import Any
from uuid import UUID

from jobs.catalog.run_log.lines import Line, opened
from jobs.core import sql
from jobs.core.crypto import Damaged, Place, UnknownKey, read_body
from jobs.core.ids import time_of
from jobs.models import HistoryPart, HistoryRound
from jobs.system.retention import archive, pruning
from jobs.system.retention.parts import archive_folder
from jobs.system.retention.rules import Rules, rules_now
from jobs.system.retention.spans import RUNS, partitions

_SIZE = """
SELECT count(*) AS count, coalesce(sum(pg_total_relation_size(relid)), 0)::bigint AS bytes
FROM unnest(ARRAY['jobs_run', 'jobs_attempt', 'jobs_log']::regclass[]) AS parent,
    pg_partition_tree(parent)
WHERE isleaf
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """How long rows stay, what they take, and how the last round went."""

    rules: Rules
    partitions: int
    bytes: int
    oldest: date | None
    """The first day with a partition of runs that is old enough to lose rows."""
    removed_runs: int
    archived_files: int
    archived_bytes: int
    last: HistoryRound | None


def status() -> Status:
    """Return the state of retention, without counting runs."""
    rules = rules_now()
    [size] = sql.query(_SIZE)
    old = partitions(RUNS, before=rules.first_id)
    parts = HistoryPart.objects.values_list("run_count", "file", "size_bytes")
    return Status(
        rules=rules,
        partitions=size["count"],
        bytes=size["bytes"],
        oldest=time_of(old[0].low).date() if old else None,
        removed_runs=sum(count for count, _file, _size in parts),
        archived_files=sum(bool(file) for _count, file, _size in parts),
        archived_bytes=sum(size for _count, _file, size in parts),
        last=HistoryRound.objects.first(),
    )


def would_leave() -> dict[str, Counter[str]]:
    """Return what the next round would do with old runs: counts by reason, for each partition.

    And for each owner with shorter days, of younger partitions: those that would leave.
    """
    rules = rules_now()
    sources = [each.name for each in partitions(RUNS, before=rules.first_id)]
    found = {source: _reasons(source, rules) for source in [*sources, "jobs_run_default"]}
    for owner, runs in pruning.of_owners(rules=rules):
        found[f"owner {owner}"] = Counter({"leaves": len(runs)})
    return found


def find_run(run_id: UUID, *, owner: str | None = None) -> Mapping[str, Any] | None:
    """Return a run as the archive has it: `run`, `attempts`, `owner`, and `file`.

    A run that is still a row is read from there; its `file` is null. `arguments` and `log`, the
    lines of its attempts, are decoded if their key is known, else null. With an owner's slug, only
    a run of that owner is returned.
    Raises ArchiveError for a damaged file.
    """
    found = _from_row(run_id) or _from_archive(run_id)
    if found is None or (owner is not None and found["owner"] != owner):
        return None
    chunks = found.pop("logs", [])
    named = {"owner": found["owner"]}
    return {**found, "arguments": _arguments(found["run"], **named), "log": _log(chunks, **named)}


def _reasons(source: str, rules: Rules) -> Counter[str]:
    text = sql.statement("system/history_reasons").replace("{source}", source)
    return Counter({row["reason"]: row["count"] for row in sql.query(text, rules.parameters)})


def _from_row(run_id: UUID) -> dict[str, Any] | None:
    text = sql.statement("system/history_rows").replace("{source}", "jobs_run")
    # The end is not included, and the next id is not of this run.
    given = {"low": run_id, "high": UUID(int=min(run_id.int + 1, 2**128 - 1))}
    rows = sql.query(text.replace("{condition}", "true"), given)
    if not rows:
        return None
    line = archive.Line(
        *(rows[0][name] for name in ("run", "attempts", "attempt_count", "slug", "logs"))
    )
    return {**archive.parsed(line.text), "file": None}


def _from_archive(run_id: UUID) -> dict[str, Any] | None:
    folder = archive_folder()
    if folder is None:
        return None
    try:
        day = time_of(run_id).astimezone(UTC).date()
    except OverflowError:
        return None  # no id of ours is of the year 10,000
    found = archive.find(folder, run_id, day)
    return None if found is None else {**found[0], "file": str(found[1])}


def _log(rows: Sequence[Mapping[str, Any]], *, owner: str) -> list[dict[str, Any]] | None:
    try:
        return [
            {"attempt": row["token"], "number": number, **line._asdict()}
            for row in rows
            for number, line in enumerate(_lines(row, owner=owner), row["first_line"])
        ]
    except (UnknownKey, Damaged, ValueError):
        return None


def _lines(row: Mapping[str, Any], *, owner: str) -> list[Line]:
    place = Place(owner, UUID(row["run_id"]))
    names = {name: row[name] for name in ("key", "token", "first_line")}
    return opened(bytes.fromhex(row["data"][2:]), **names, place=place)


def _arguments(row: Mapping[str, Any], *, owner: str) -> dict[str, Any] | None:
    payload, key = bytes.fromhex(row["payload"][2:]), row["payload_key"]
    place = Place(owner, UUID(row["id"]), row["job_id"])
    try:
        args, kwargs = read_body(payload, key=key, place=place)
    except (UnknownKey, Damaged, ValueError):
        return None
    return {"args": args, "kwargs": kwargs}
