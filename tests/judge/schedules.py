"""Rules about schedules: each due time has one run, or lies in one record of what was missed.

Due times are found here by a plain formula and a stepped clock; no code is shared with the
project. What was due while its job was being written may go either way, and nothing else may.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tests.judge import cron_oracle
from tests.judge.rows import MissedRow, Rule, TriggeredRow
from tests.judge.verdict import Finding, Verdict

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class Era:
    """A stretch in which a job had one schedule, or was paused.

    For sure from `sure_from` until before `sure_until`; perhaps from `begins` until before `ends`.
    """

    rule: Rule
    begins: datetime
    sure_from: datetime
    sure_until: datetime
    ends: datetime
    is_paused: bool = False


@dataclass(frozen=True)
class Case:
    """A job: its eras, and the reasons for which due times of it may have been missed."""

    eras: Sequence[Era]
    reasons: frozenset[str] = frozenset()


def due_times(rule: Rule, *, start: datetime, end: datetime) -> list[datetime]:
    """Return the due times d of a schedule with start <= d < end, in order."""
    if start >= end:
        return []
    match rule.schedule:
        case "interval":
            found = list(_of_interval(rule, start, end))
        case "cron":
            [found] = cron_oracle.due([rule.cron], rule.zone or "UTC", start=_up(start), end=end)
        case "once":
            found = [rule.once_at] if rule.once_at else []
        case other:
            raise ValueError(f"{other!r} has no due times here")
    first, last = rule.start_at or start, rule.end_at or end
    return [due for due in found if start <= due < end and first <= due <= last]


def _of_interval(rule: Rule, start: datetime, end: datetime) -> Iterator[datetime]:
    assert rule.interval_minutes and rule.phase is not None and rule.shard is not None
    minute = (start - EPOCH) // MINUTE
    while (moment := EPOCH + minute * MINUTE) < end:
        if minute % rule.interval_minutes == rule.phase:
            yield moment + timedelta(milliseconds=500 * rule.shard)
        minute += 1


def _up(moment: datetime) -> datetime:
    """Return the whole minute at or after a moment."""
    return EPOCH + -((EPOCH - moment) // MINUTE) * MINUTE


@dataclass
class Due:
    """The due times of one job, sorted out."""

    runs: set[datetime] = field(default_factory=set)
    paused: set[datetime] = field(default_factory=set)
    perhaps: set[datetime] = field(default_factory=set)

    @classmethod
    def of(cls, eras: Iterable[Era]) -> Due:
        """Combine eras: a due time that one of them has for sure is sure."""
        due = cls()
        for era in eras:
            for moment in due_times(era.rule, start=era.begins, end=era.ends):
                is_sure = era.sure_from <= moment < era.sure_until
                sure = due.paused if era.is_paused else due.runs
                (sure if is_sure else due.perhaps).add(moment)
        due.paused -= due.runs
        return due


def judge_schedules(
    cases: Mapping[str, Case], *, triggered: Iterable[TriggeredRow], missed: Iterable[MissedRow]
) -> Verdict:
    """Return what is wrong with the runs and records of jobs, by key, in a scene at rest."""
    verdict = Verdict()
    runs: dict[str, list[datetime]] = defaultdict(list)
    records: dict[str, list[MissedRow]] = defaultdict(list)
    for row in triggered:
        runs[row.key].append(row.due_at)
    for record in missed:
        records[record.key].append(record)
    figures: Counter[str] = Counter()
    for key in sorted(cases.keys() | runs.keys() | records.keys()):
        case = cases.get(key, Case(()))
        due = Due.of(case.eras)
        figures += Counter({"sure": len(due.runs), "in pauses": len(due.paused)})
        figures += Counter({"perhaps": len(due.perhaps - due.runs - due.paused)})
        figures += Counter({"runs": len(runs[key]), "recorded": sum(r.count for r in records[key])})
        _judge_runs(verdict, key, due, runs[key], records[key])
        _judge_records(verdict, key, due, records[key], case.reasons)
    verdict.figures.update(figures)
    return verdict


def _judge_runs(
    verdict: Verdict, key: str, due: Due, runs: Sequence[datetime], records: Sequence[MissedRow]
) -> None:
    """Find runs of no due time (not_due), and due times that have neither or both.

    One without a run and a record is unaccounted; one with two of them is due_twice.
    """
    for moment, times in sorted(Counter(runs).items()):
        if times > 1:
            verdict.found["due_twice"].append(Finding(key, f"{times} runs for {moment}"))
        if moment not in due.runs | due.perhaps:
            why = "in a pause" if moment in due.paused else "when it was not due"
            verdict.found["not_due"].append(Finding(key, f"ran {why}: {moment}"))
    ran = set(runs)
    for moment in sorted(due.runs | due.paused):
        inside = sum(record.first_at <= moment <= record.last_at for record in records)
        if not inside and moment not in ran:
            verdict.found["unaccounted"].append(Finding(key, f"neither run nor recorded: {moment}"))
        if inside + (moment in ran) > 1 and moment not in due.perhaps:
            said = f"{moment in ran:d} run and {inside} records of {moment}"
            verdict.found["due_twice"].append(Finding(key, said))


def _judge_records(
    verdict: Verdict, key: str, due: Due, records: Sequence[MissedRow], reasons: frozenset[str]
) -> None:
    """Find records that do not say what was missed, or why (misrecorded)."""
    sure = sorted(due.runs | due.paused)
    every = sorted(due.runs | due.paused | due.perhaps)
    for record in records:
        low, high = _between(sure, record), _between(every, record)
        if not low <= record.count <= high:
            said = f"{record.count} due times, not {low} to {high}, in {record}"
            verdict.found["misrecorded"].append(Finding(key, said))
        if not {record.first_at, record.last_at} <= set(every):
            verdict.found["misrecorded"].append(Finding(key, f"ends beside due times: {record}"))
        if record.reason not in reasons:
            verdict.found["misrecorded"].append(Finding(key, f"there is no such reason: {record}"))


def _between(moments: Sequence[datetime], record: MissedRow) -> int:
    return bisect_right(moments, record.last_at) - bisect_left(moments, record.first_at)
