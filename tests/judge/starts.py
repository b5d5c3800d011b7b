"""Rules about starts: no more than are explained, and never two at once."""

from collections.abc import Iterator
from itertools import combinations, pairwise
from math import inf

from tests.judge.evidence import Evidence, Start
from tests.judge.moves import OPERATORS_RETRY_FROM
from tests.judge.rows import LOST_LEASE, RunRow
from tests.judge.verdict import Finding

# After these the body has no end in the log: it was killed, or died.
ENDED_FROM_OUTSIDE = LOST_LEASE | {"cancelled"}


def excess_starts(evidence: Evidence) -> Iterator[Finding]:
    """Starts of a run are at most 1 + lost leases + failures retried + operator's retries."""
    for run in evidence.runs.values():
        outcomes = [row.outcome for row in evidence.attempts_of(run.id)]
        lost = sum(outcome in LOST_LEASE for outcome in outcomes)
        retried = outcomes.count("retrying") + outcomes.count("snoozed") + operators_retries(run)
        starts = len(evidence.starts_of(run.id))
        if starts > 1 + lost + retried:
            yield Finding(run.id, f"{starts} starts, {lost} lost leases, {retried} retries")


def operators_retries(run: RunRow) -> int:
    """Return how often the run's history leaves a terminal state."""
    return sum(entry.state in OPERATORS_RETRY_FROM for entry, _ in pairwise(run.history))


def overlaps(evidence: Evidence) -> Iterator[Finding]:
    """Two bodies of a run are never alive together, unless the older one's was disturbed."""
    for run_id, starts in evidence.starts.items():
        outcomes = {row.token: row.outcome for row in evidence.attempts_of(run_id)}
        for first, second in combinations(starts, 2):
            if first.end is None:
                over = first.token in outcomes and outcomes[first.token] in ENDED_FROM_OUTSIDE
            else:
                over = first.end.position < second.position
            if not over and not _is_excused(evidence, first, second):
                yield Finding(run_id, _describe(first, second))


def _is_excused(evidence: Evidence, first: Start, second: Start) -> bool:
    return _starts_late(evidence, first, second) or evidence.was_disturbed(
        first, after=first.position, before=second.position
    )


def _starts_late(evidence: Evidence, first: Start, second: Start) -> bool:
    """Tell whether the second was admitted before the first, and frozen on its way."""
    if first.token is None or second.token is None or second.token >= first.token:
        return False
    return evidence.was_disturbed(second, after=-inf, before=second.position)


def _describe(first: Start, second: Start) -> str:
    ended = "never ended" if first.end is None else "was alive"
    return (
        f"token {first.token} (pid {first.event.pid}) {ended} "
        f"when token {second.token} (pid {second.event.pid}) started"
    )


def start_tokens(evidence: Evidence) -> Iterator[Finding]:
    """Each start has a token that was issued, higher than that of every start before it."""
    for run_id, starts in evidence.starts.items():
        run = evidence.runs.get(run_id)
        for start in starts:
            if run and (start.token is None or not 1 <= start.token <= run.token):
                yield Finding(run_id, f"started with token {start.token}, row is at {run.token}")
        for first, second in combinations(starts, 2):
            if first.token is None or second.token is None or first.token < second.token:
                continue
            if first.token == second.token:
                yield Finding(run_id, f"two starts with token {first.token}")
            elif not _starts_late(evidence, first, second):
                yield Finding(run_id, f"token {second.token} started after token {first.token}")
