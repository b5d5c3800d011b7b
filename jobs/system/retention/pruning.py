"""Delete runs one by one where a partition stays.

That is in the default partition, in large partitions of which few runs leave, and for owners whose
runs leave earlier than those of others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from fleet import crash_point
from jobs.core import sql
from jobs.core.ids import first_id_of, time_of
from jobs.models import HistoryPart, Owner
from jobs.system.retention import parts as removed_parts
from jobs.system.retention.rules import Rules

MOST: Final = 20_000
"""Runs that one call deletes at most; the next round goes on."""
CHUNK: Final = 1_000
LOWEST: Final = UUID(int=0)


def prune(source: str, *, low: UUID, high: UUID, rules: Rules) -> int:
    """Delete up to MOST runs of a table that may leave; return how many. Raises ArchiveError."""
    return _delete(_find(source, low=low, high=high, owner=None, rules=rules), rules)


def prune_owners(*, rules: Rules) -> int:
    """Delete runs of owners whose runs leave earlier than others; return how many."""
    return sum(_delete(found, rules) for _owner, found in of_owners(rules=rules))


def of_owners(*, rules: Rules) -> Iterator[tuple[Owner, list[UUID]]]:
    """Yield owners with shorter days, and up to MOST of their runs that may leave.

    Those of older partitions are left out, which are replaced as a whole.
    """
    for owner in Owner.objects.filter(run_days__lt=rules.least_days).order_by("pk"):
        days = max(owner.run_days or 0, rules.key_days)
        high = first_id_of(rules.before(days))
        yield (
            owner,
            _find("jobs_run", low=rules.first_id, high=high, owner=owner.pk, rules=rules),
        )


def _find(source: str, *, low: UUID, high: UUID, owner: int | None, rules: Rules) -> list[UUID]:
    text = sql.statement("system/history_find_runs").replace("{source}", source)
    given = {**rules.parameters, "low": low, "high": high, "owner": owner, "most": MOST}
    return [row["id"] for row in sql.query(text, given)]


def _delete(ids: Sequence[UUID], rules: Rules) -> int:
    by_day: dict[datetime, list[UUID]] = defaultdict(list)
    for run_id in ids:
        moment = time_of(run_id).astimezone(UTC)
        by_day[moment.replace(hour=0, minute=0, second=0, microsecond=0)].append(run_id)
    return sum(_delete_day(day, found, rules) for day, found in by_day.items())


def _delete_day(day: datetime, ids: Sequence[UUID], rules: Rules) -> int:
    leaving = removed_parts.Leaving(day, "jobs_run", ids=tuple(ids))
    parts: list[HistoryPart] = removed_parts.parts_of([leaving])
    crash_point("retention.after_archive")
    total = 0
    for start in range(0, len(ids), CHUNK):
        chunk = ids[start : start + CHUNK]
        given: dict[str, Any] = {"ids": list(chunk), "low": min(chunk), "high": max(chunk)}
        with transaction.atomic():
            total += len(sql.run("system/history_delete_runs", {**rules.parameters, **given}))
            removed_parts.save(parts)
        parts = []
    return total
