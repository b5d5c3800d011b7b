"""The round of retention: what the system worker runs every ten minutes.

Each step may be repeated, and may end at any point. A step that fails leaves its rows where they
are, and the row of `HistoryRound` says why.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import Final

from django.db.models.functions import Now

from jobs.core import sql
from jobs.models import HistoryRound
from jobs.system.retention import other_tables, pruning, replacement
from jobs.system.retention.archive import ArchiveError
from jobs.system.retention.rules import Rules, rules_now
from jobs.system.retention.spans import (
    ATTEMPTS,
    RUNS,
    Partition,
    Table,
    partitions,
    with_neighbour,
)

logger = logging.getLogger(__name__)

ROUND_SECONDS: Final = 60.0
"""After this time a round begins no further partition; the next one goes on."""
FEW: Final = 2_000
"""Runs that are deleted one by one, from a partition in which many stay."""

_LOOK: Final = """
SELECT (SELECT count(*) FROM (
    SELECT FROM {source} r LEFT JOIN jobs_owner o ON o.id = r.owner_id
    WHERE {leaves} LIMIT %(few)s) AS found) AS leaving,
    NOT EXISTS (SELECT FROM {source}) AS is_empty
"""
_LOOK_AT_ATTEMPTS: Final = """
SELECT NOT EXISTS (SELECT FROM {source}) AS is_empty, EXISTS (
    SELECT FROM {source} a LEFT JOIN jobs_run r
        ON r.id = a.run_id AND r.id >= %(low)s AND r.id < %(high)s
    WHERE r.id IS NULL
        OR a.ended_at < %(attempts_before)s AND r.ended_at IS NOT NULL) AS leaving
"""


@sql.alone
def remove_old_history(*, seconds: float = ROUND_SECONDS) -> dict[str, int]:
    """Remove what may leave; return counts of removed rows, and of partitions, by kind.

    The round is noted in `HistoryRound`, with the problem if there was one.
    """
    until = time.monotonic() + seconds
    HistoryRound.objects.update_or_create(pk=1, defaults={"began_at": Now(), "ended_at": None})
    replacement.drop_left()
    rules = rules_now()
    keys, are_keys_gone = other_tables.remove_keys(rules)
    found = {"keys": keys, "partitions": 0, "runs": 0}
    problem = ""
    try:
        if are_keys_gone:
            found["partitions"], found["runs"] = _remove_runs(rules, until)
    except (ArchiveError, replacement.Busy) as error:
        problem = str(error)
        logger.warning("old runs stay: %s", problem)
    found |= other_tables.remove_others(rules)
    _note(problem)
    if any(found.values()):
        logger.info("removed old history: %s", _in_words(found))
    return found


def _remove_runs(rules: Rules, until: float) -> tuple[int, int]:
    replaced, problems = 0, []
    runs = 0
    for step in (_replace_runs, _replace_attempts):
        try:
            more, gone = step(rules, until)
            replaced, runs = replaced + more, runs + gone
        except replacement.Busy as error:
            # Attempts of other partitions need not wait.
            problems.append(error)
    runs += pruning.prune(
        "ONLY jobs_run_default", low=pruning.LOWEST, high=rules.first_id, rules=rules
    )
    runs += pruning.prune_owners(rules=rules)
    if problems:
        raise problems[0]
    return replaced, runs


def _replace_runs(rules: Rules, until: float) -> tuple[int, int]:
    replaced = runs = 0
    older: list[Partition] = []
    for partition in partitions(RUNS, before=rules.first_id):
        if time.monotonic() > until:
            break
        text = _LOOK.replace("{leaves}", sql.statement("system/history_leaves"))
        [look] = sql.query(
            text.replace("{source}", partition.name), {**rules.parameters, "few": FEW}
        )
        if not look["leaving"] and not look["is_empty"]:
            older = [partition]
        elif 0 < look["leaving"] < FEW and not partition.is_small and partition.rows >= 0:
            runs += pruning.prune(
                partition.name, low=partition.low, high=partition.high, rules=rules
            )
            older = [partition]
        else:
            sources = [partition] if look["is_empty"] else with_neighbour(partition, older)
            parts = replacement.replace(RUNS, sources, rules=rules)
            replaced += len(sources)
            runs += sum(part.run_count for part in parts)
            older = _after(RUNS, sources, rules)
    return replaced, runs


def _replace_attempts(rules: Rules, until: float) -> tuple[int, int]:
    replaced = 0
    older: list[Partition] = []
    for partition in partitions(ATTEMPTS, before=rules.first_id):
        if time.monotonic() > until:
            break
        [look] = sql.query(
            _LOOK_AT_ATTEMPTS.replace("{source}", partition.name),
            {**rules.parameters, "low": partition.low, "high": partition.high},
        )
        if not look["leaving"] and not look["is_empty"]:
            older = [partition]
            continue
        sources = [partition] if look["is_empty"] else with_neighbour(partition, older)
        replacement.replace(ATTEMPTS, sources, rules=rules)
        replaced += len(sources)
        older = _after(ATTEMPTS, sources, rules)
    return replaced, 0


def _after(table: Table, sources: Iterable[Partition], rules: Rules) -> list[Partition]:
    """Return what has taken the place of these partitions, if anything stayed."""
    low = min(source.low for source in sources)
    return [each for each in partitions(table, before=rules.first_id) if each.low == low]


def _note(problem: str) -> None:
    row = HistoryRound.objects.get(pk=1)
    row.ended_at = sql.now()
    row.problem_since = (row.problem_since or row.ended_at) if problem else None
    row.problem = problem
    row.save()


def _in_words(found: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in found.items() if count)
