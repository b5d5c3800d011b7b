"""The round of retention: what the system worker runs every ten minutes.

Each step may be repeated, and may end at any point. A step that fails leaves its rows where they
are, and the row of `HistoryRound` says why.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Final

from django.db.models.functions import Now

from jobs.core import log_events, sql
from jobs.models import HistoryRound
from jobs.system.retention import other_tables, pruning, replacement
from jobs.system.retention.archive import ArchiveError
from jobs.system.retention.rules import Rules, rules_now
from jobs.system.retention.spans import (
    ATTEMPTS,
    LOGS,
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
_LOOK_AT: Final = {
    ATTEMPTS: """
SELECT NOT EXISTS (SELECT FROM {source}) AS is_empty, EXISTS (
    SELECT FROM {source} a LEFT JOIN jobs_run r
        ON r.id = a.run_id AND r.id >= %(low)s AND r.id < %(high)s
    WHERE r.id IS NULL
        OR a.ended_at < %(attempts_before)s AND r.ended_at IS NOT NULL) AS leaving
""",
    LOGS: """
SELECT NOT EXISTS (SELECT FROM {source}) AS is_empty, EXISTS (
    SELECT FROM {source} l WHERE NOT EXISTS (
        SELECT FROM jobs_run r WHERE r.id = l.run_id AND r.id >= %(low)s AND r.id < %(high)s)
) AS leaving
""",
}
"""What is asked of a partition of rows that belong to runs."""
_ORPHANS: Final = """
DELETE FROM ONLY jobs_log_default l
WHERE l.run_id < %(before)s AND NOT EXISTS (SELECT FROM jobs_run r WHERE r.id = l.run_id)
"""


@sql.alone
def remove_old_history(
    *, seconds: float = ROUND_SECONDS, looks_again: bool = True
) -> dict[str, int]:
    """Remove what may leave; return counts of removed rows, and of partitions, by kind.

    The round is noted in `HistoryRound`, with the problem if there was one. Without `looks_again`,
    it leaves out partitions in which a round of today has found nothing more.
    """
    until = time.monotonic() + seconds
    HistoryRound.objects.update_or_create(pk=1, defaults={"began_at": Now(), "ended_at": None})
    replacement.drop_left()
    rules = rules_now()
    keys, are_keys_gone = other_tables.remove_keys(rules)
    found = {"keys": keys, "partitions": 0, "runs": 0}
    work = _Partitions(rules, until, looks_again=looks_again)
    problem = ""
    try:
        if are_keys_gone:
            work.replace_runs()
            work.replace_of_runs(ATTEMPTS)
            work.replace_of_runs(LOGS)
            found["runs"] = _prune(rules)
    except ArchiveError as error:
        problem = str(error)
    problem = problem or work.problem
    if problem:
        log_events.OLD_RUNS_STAY.log(logger, error=problem)
    found["partitions"] += work.replaced
    found["runs"] += work.runs
    found |= other_tables.remove_others(rules)
    _note(problem, work)
    if any(found.values()):
        log_events.HISTORY_REMOVED.log(logger, what=_in_words(found))
    return found


class _Partitions:
    """The partitions of one round, the oldest first, until its time is up."""

    def __init__(self, rules: Rules, until: float, *, looks_again: bool) -> None:
        self._rules, self._until = rules, until
        self.digest = rules.digest
        last = HistoryRound.objects.get(pk=1)
        is_known = last.looked_by == self.digest and not looks_again
        self.looked_at: set[str] = set(last.looked_at) if is_known else set()
        self.replaced = 0
        self.runs = 0
        self.problem = ""
        """Why a partition was not replaced; the first one's."""

    def replace_runs(self) -> None:
        """Remove runs. Raises ArchiveError."""
        leaves = sql.statement("system/history_leaves")
        for partition, older in self._each(RUNS):
            text = _LOOK.replace("{leaves}", leaves).replace("{source}", partition.name)
            [look] = sql.query(text, {**self._rules.parameters, "few": FEW})
            is_large = partition.rows >= 0 and not partition.is_small
            if is_large and 0 < look["leaving"] < FEW:
                self.runs += pruning.prune(
                    partition.name, low=partition.low, high=partition.high, rules=self._rules
                )
            elif look["leaving"] or look["is_empty"]:
                self._replace(RUNS, partition, [] if look["is_empty"] else older)
            else:
                self.looked_at.add(partition.name)

    def replace_of_runs(self, table: Table) -> None:
        """Remove attempts or logs whose run is gone, and attempts older than their days."""
        for partition, older in self._each(table):
            [look] = sql.query(
                _LOOK_AT[table].replace("{source}", partition.name),
                {**self._rules.parameters, "low": partition.low, "high": partition.high},
            )
            if look["leaving"] or look["is_empty"]:
                self._replace(table, partition, [] if look["is_empty"] else older)
            else:
                self.looked_at.add(partition.name)

    def _each(self, table: Table) -> Iterator[tuple[Partition, list[Partition]]]:
        """Yield each partition that is to be looked at, with the one before it as it is then."""
        for partition in partitions(table, before=self._rules.first_id):
            if time.monotonic() > self._until:
                return
            if partition.name not in self.looked_at:
                yield partition, partitions(table, before=partition.low)[-1:]

    def _replace(self, table: Table, partition: Partition, older: list[Partition]) -> None:
        sources = with_neighbour(partition, older)
        try:
            parts = replacement.replace(table, sources, rules=self._rules)
        except replacement.Busy as error:
            self.problem = self.problem or str(error)
            return
        self.looked_at -= {source.name for source in sources}
        if table is RUNS:
            # They may have been looked at when their runs could not be removed yet.
            low, high = sources[0].low, sources[-1].high
            self.looked_at -= {
                each.name
                for of_runs in _LOOK_AT
                for each in partitions(of_runs, before=self._rules.first_id)
                if each.low < high and each.high > low
            }
        self.replaced += len(sources)
        self.runs += sum(part.run_count for part in parts)


def _prune(rules: Rules) -> int:
    """Delete runs of the default partition, and of owners with shorter days; return how many."""
    default = "ONLY jobs_run_default"
    # Of runs that were started again long after the partition of their day was dropped as empty.
    sql.query(_ORPHANS, {"before": rules.first_id})
    gone = pruning.prune(default, low=pruning.LOWEST, high=rules.first_id, rules=rules)
    return gone + pruning.prune_owners(rules=rules)


def _note(problem: str, work: _Partitions) -> None:
    row = HistoryRound.objects.get(pk=1)
    row.ended_at = sql.now()
    row.problem_since = (row.problem_since or row.ended_at) if problem else None
    row.problem = problem
    row.looked_at, row.looked_by = sorted(work.looked_at), work.digest
    row.save()


def _in_words(found: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in found.items() if count)
