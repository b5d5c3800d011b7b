"""Rules about the records of a run: its outcome, its history, its tokens and attempts."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from tests.judge.evidence import Evidence
from tests.judge.moves import MOVES
from tests.judge.rows import ACTIVE, LOST_LEASE, NOT_BEGUN, AttemptRow, RunRow
from tests.judge.starts import operators_retries, start_tokens
from tests.judge.verdict import Finding

OUTCOMES_BEHIND = {"succeeded": frozenset({"succeeded"}), "failed": LOST_LEASE | {"failed"}}


def stale(evidence: Evidence) -> Iterator[Finding]:
    """The standing outcome is the newest token's, in the rows and in the task log."""
    for run in evidence.runs.values():
        rows = evidence.attempts_of(run.id)
        if run.outcome_token is not None and run.outcome_token != run.token:
            yield Finding(run.id, f"outcome of token {run.outcome_token}, row is at {run.token}")
        newest = next((row.outcome for row in rows if row.token == run.token), None)
        behind = OUTCOMES_BEHIND.get(run.state)
        if behind and newest not in behind:
            yield Finding(run.id, f"{run.state}, but token {run.token} ended as {newest}")
        if newest == "succeeded" and run.state != "succeeded":
            yield Finding(run.id, f"{run.state}, but token {run.token} succeeded")
        if run.state == "succeeded" and not _returned(evidence, run):
            yield Finding(run.id, f"succeeded, but token {run.token} never returned")
        yield from _outcomes_left_behind(run, [row for row in rows if row.token < run.token])


def _returned(evidence: Evidence, run: RunRow) -> bool:
    ends = [start.end for start in evidence.starts_of(run.id) if start.token == run.token]
    return any(end is not None and end.outcome == "returned" for end in ends)


def _outcomes_left_behind(run: RunRow, older: list[AttemptRow]) -> Iterator[Finding]:
    """An attempt that ended the run is its last, but for a failure that was retried by hand."""
    for row in older:
        if row.outcome == "succeeded":
            yield Finding(run.id, f"token {row.token} succeeded, row is at {run.token}")
    failures = sum(row.outcome == "failed" for row in older)
    if failures > operators_retries(run):
        yield Finding(run.id, f"failed {failures} times before token {run.token}, nobody asked")


def history(evidence: Evidence) -> Iterator[Finding]:
    """Replaying the history by allowed moves ends in the row's state; each admission is in it."""
    for run in evidence.runs.values():
        states = ["new", *(entry.state for entry in run.history)]
        for before, after in pairwise(states):
            if after not in MOVES.get(before, ()):
                yield Finding(run.id, f"move from {before} to {after} is not allowed")
        if states[-1] != run.state:
            yield Finding(run.id, f"history ends in {states[-1]}, row says {run.state}")
        if any(after.at < before.at for before, after in pairwise(run.history)):
            yield Finding(run.id, "times of the history go backwards")
        admitted = states.count("admitted")
        if admitted != run.token:
            yield Finding(run.id, f"admitted {admitted} times, row is at token {run.token}")


def tokens(evidence: Evidence) -> Iterator[Finding]:
    """Tokens rise with the attempts, and the row holds the newest."""
    for run in evidence.runs.values():
        rows = evidence.attempts_of(run.id)
        newest = max((row.token for row in rows), default=0)
        if newest > run.token:
            yield Finding(run.id, f"row is at token {run.token}, an attempt has {newest}")
        falls = sum(after.number < before.number for before, after in pairwise(rows))
        if falls:
            yield Finding(run.id, f"numbers of the attempts fall {falls} times")
        for before, after in pairwise(rows):
            if before.started_at and after.started_at and after.started_at < before.started_at:
                yield Finding(run.id, f"token {after.token} started before token {before.token}")
    yield from start_tokens(evidence)


def attempts(evidence: Evidence) -> Iterator[Finding]:
    """Each token has one attempt, except one in progress; one that did nothing is not spent.

    That is one that was given back without a start, or that ended as `not begun`.
    """
    for run in evidence.runs.values():
        rows = evidence.attempts_of(run.id)
        per_token = Counter(row.token for row in rows)
        for token in range(1, run.token + 1):
            expected = 0 if token == run.token and run.state in ACTIVE else 1
            if per_token[token] != expected:
                yield Finding(run.id, f"token {token} has {per_token[token]} attempts")
        given_back = {row.token for row in rows if row.outcome == "given back"}
        snoozed = sum(row.outcome == "snoozed" for row in rows)
        not_begun = sum(entry.cause == NOT_BEGUN for entry in run.history)
        unspent = len(given_back) + not_begun + snoozed
        at_least = 0 if operators_retries(run) else run.token - unspent
        if not at_least <= run.attempt_count <= run.token:
            yield Finding(run.id, f"attempt_count {run.attempt_count} at token {run.token}")
        for token in sorted(given_back & {start.token for start in evidence.starts_of(run.id)}):
            yield Finding(run.id, f"token {token} was given back and yet started")
    for run_id in sorted(evidence.attempts.keys() - evidence.runs.keys()):
        yield Finding(run_id, "attempts without a run")
