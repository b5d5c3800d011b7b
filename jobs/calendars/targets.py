"""Targets by name: missing ones are created."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jobs.core import sql
from jobs.models import Target


def targets_of(named: Iterable[tuple[int, str]]) -> dict[tuple[int, str], int]:
    """Return the ids of targets by owner's id and name; create the missing ones."""
    wanted = sorted(set(named))
    if not wanted:
        return {}
    found = _known(wanted)
    if missing := [pair for pair in wanted if pair not in found]:
        # Another transaction may create one at the same moment: it is read again.
        Target.objects.bulk_create(
            [Target(owner_id=owner_id, name=name) for owner_id, name in missing],
            ignore_conflicts=True,
            batch_size=5_000,
        )
        found |= _known(missing)
    return found


def _known(pairs: Sequence[tuple[int, str]]) -> dict[tuple[int, str], int]:
    rows = sql.query(
        "SELECT t.id, t.owner_id, t.name FROM jobs_target t "
        "JOIN unnest(%s::bigint[], %s::text[]) AS p(owner_id, name) "
        "ON t.owner_id = p.owner_id AND t.name = p.name",
        [[owner_id for owner_id, _ in pairs], [name for _, name in pairs]],
    )
    return {(row["owner_id"], row["name"]): row["id"] for row in rows}
