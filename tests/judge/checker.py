"""The judge: evidence in, verdict out. Pure; one rule for each kind of finding."""

from collections.abc import Callable, Iterable, Iterator

from tests.judge import records, starts, submits
from tests.judge.evidence import Evidence
from tests.judge.log import SubmitEvent, TaskEvent
from tests.judge.rows import LOST_LEASE, AttemptRow, RunRow
from tests.judge.verdict import Finding, Verdict

RULES: dict[str, Callable[[Evidence], Iterator[Finding]]] = {
    "lost": submits.lost,
    "ghosts": submits.ghosts,
    "torn": submits.torn,
    "excess_starts": starts.excess_starts,
    "overlaps": starts.overlaps,
    "stale": records.stale,
    "history": records.history,
    "tokens": records.tokens,
    "attempts": records.attempts,
}


def judge(
    *,
    task_events: Iterable[TaskEvent],
    submit_events: Iterable[SubmitEvent],
    runs: Iterable[RunRow],
    attempts: Iterable[AttemptRow],
) -> Verdict:
    """Return what is wrong with a scene that has come to rest.

    The rows are all rows of the database: one that no submit accounts for is a ghost.
    """
    evidence = Evidence(
        task_events=task_events, submit_events=submit_events, runs=runs, attempts=attempts
    )
    found = {name: list(rule(evidence)) for name, rule in RULES.items()}
    return Verdict(found=found, figures=_count(evidence))


def _count(evidence: Evidence) -> dict[str, int]:
    outcomes = [row.outcome for rows in evidence.attempts.values() for row in rows]
    return {
        "submits": len(evidence.submits),
        "runs": len(evidence.runs),
        "starts": sum(len(starts) for starts in evidence.starts.values()),
        "lost leases": sum(outcome in LOST_LEASE for outcome in outcomes),
        "retries": outcomes.count("retrying"),
    }
