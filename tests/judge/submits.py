"""Rules about submits: committed ones are complete and end, others do not exist."""

from collections import defaultdict
from collections.abc import Iterator

from tests.judge.evidence import Evidence, Submit
from tests.judge.rows import LOST_LEASE, TERMINAL, RunRow
from tests.judge.verdict import Finding


def lost(evidence: Evidence) -> Iterator[Finding]:
    """A committed run has a row and ends; when it succeeded or failed, it was started."""
    for submit in evidence.submits.values():
        if submit.status == "ok":
            for run_id in sorted(submit.ids - evidence.runs.keys()):
                yield Finding(run_id, f"committed by submit {submit.key}, has no row")
    for run in evidence.runs.values():
        if run.state not in TERMINAL:
            yield Finding(run.id, f"not ended: {run.state}")
        elif run.state in ("succeeded", "failed") and not _was_started(evidence, run):
            yield Finding(run.id, f"{run.state} without a start")


def _was_started(evidence: Evidence, run: RunRow) -> bool:
    # A child may die between the pool's accept and the first line of the body.
    died_early = run.state == "failed" and any(
        row.started_at is not None and row.outcome in LOST_LEASE
        for row in evidence.attempts_of(run.id)
    )
    return bool(evidence.starts_of(run.id)) or died_early


def ghosts(evidence: Evidence) -> Iterator[Finding]:
    """A submit that failed, was rolled back or never made has no row and no start."""
    for submit in evidence.submits.values():
        for run_id in sorted(submit.rolled_back):
            if run_id in evidence.runs:
                yield Finding(run_id, f"exists, but submit {submit.key} was rolled back")
    for run_id, starts in evidence.starts.items():
        if run_id not in evidence.runs:
            yield Finding(run_id, f"ran {len(starts)} times without a row")
    yield from _strangers(evidence)


def _strangers(evidence: Evidence) -> Iterator[Finding]:
    """Rows that no submit accounts for."""
    members = _members(evidence)
    for submit in evidence.submits.values():
        if submit.status == "failed" or submit.is_impossible:
            why = "failed" if submit.status == "failed" else "never reached its COMMIT"
            for run_id in sorted(members[submit.key]):
                yield Finding(run_id, f"exists, but submit {submit.key} {why}")
    known = {run_id for submit in evidence.submits.values() for run_id in submit.rolled_back}
    known.update(*members.values())
    strangers = sorted(evidence.runs.keys() - known)
    # A submitter killed in mid-call may have committed runs whose ids were not logged.
    unnamed = sum(_unnamed_count(submit, members) for submit in evidence.submits.values())
    if len(strangers) > unnamed:
        for run_id in strangers:
            yield Finding(run_id, f"exists without a submit ({unnamed} such rows are explained)")


def torn(evidence: Evidence) -> Iterator[Finding]:
    """A submit is there with all of its runs or with none."""
    members = _members(evidence)
    for submit in evidence.submits.values():
        present = members[submit.key] & evidence.runs.keys()
        if submit.count is None or submit.status == "failed":
            continue
        if len(submit.ids) > submit.count:
            yield Finding(submit.key, f"{len(submit.ids)} ids for {submit.count} runs")
        elif submit.status == "ok" and submit.confirmed_count != submit.count:
            yield Finding(submit.key, f"{submit.confirmed_count} ids for {submit.count} runs")
        elif submit.status == "unknown" and len(present) not in (0, submit.count):
            yield Finding(submit.key, f"{len(present)} of {submit.count} runs exist")


def _unnamed_count(submit: Submit, members: dict[str, set[str]]) -> int:
    """Return how many runs the submit may have committed beyond those known as its own."""
    if submit.count is None or submit.status == "failed" or submit.is_impossible:
        return 0
    return max(submit.count - len(members[submit.key]), 0)


def _members(evidence: Evidence) -> dict[str, set[str]]:
    """Return the ids of each submit: those it noted and those whose row carries its key."""
    members: dict[str, set[str]] = defaultdict(set)
    for submit in evidence.submits.values():
        members[submit.key] |= submit.ids
    for run in evidence.runs.values():
        if run.key in evidence.submits and run.id not in evidence.submits[run.key].rolled_back:
            members[run.key].add(run.id)
    return members
