"""Hooks: the project's functions are called with ends, after the commit, at least once.

Ends are taken and stored as calls in one transaction. A call counts as failed before it begins, and
its row is deleted when the hook has returned: so one that ends the process is called again later.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from billiard.exceptions import SoftTimeLimitExceeded
from django.db import transaction

from fleet import crash_point
from jobs.catalog.ends import RunEnd, SubmissionEnd
from jobs.catalog.hooks import any_hooks, run_hooks, submission_hooks
from jobs.core import log_events, sql
from jobs.core.apart import ROW_ERRORS
from jobs.models import HookCall
from jobs.system import ends

logger = logging.getLogger(__name__)

LISTENER: Final = "hooks"
BUDGET_SECONDS: Final = 5.0
"""Seconds of a round, in which no further call begins after them. Each hook has an equal part."""
SOFT_LIMIT_SECONDS: Final = 20
"""Seconds after which SoftTimeLimitExceeded is raised in a hook; ten later its process ends."""
MOST_CALLS: Final = 10
FIRST_DELAY_SECONDS: Final = 5.0
LONGEST_DELAY_SECONDS: Final = 3_600.0
CHUNK: Final = 100
GONE_DAYS: Final = 7

_BEGIN: Final = """
UPDATE jobs_hookcall SET failures = failures + 1,
    next_at = clock_timestamp() + make_interval(secs => least(%s, %s * 2.0 ^ least(failures, 60)))
WHERE id = %s RETURNING failures
"""
_DUE: Final = """
SELECT id, facts, run_id, submission_id FROM jobs_hookcall
WHERE hook = %s AND (submission_id IS NOT NULL) = %s AND next_at <= clock_timestamp()
ORDER BY next_at, id LIMIT %s
"""
_ANY_DUE: Final = """
SELECT EXISTS (SELECT FROM jobs_hookcall WHERE hook = ANY(%s) AND next_at <= clock_timestamp())
    AS found
"""
_GONE: Final = """
WITH gone AS (
    DELETE FROM jobs_hookcall
    WHERE hook <> ALL(%s) AND created_at < clock_timestamp() - make_interval(days => %s)
    RETURNING hook)
SELECT hook, count(*) AS count FROM gone GROUP BY hook ORDER BY hook
"""


def call_hooks() -> dict[str, int]:
    """Call the hooks of ends that have been recorded; return how many calls succeeded and failed.

    Without a hook in this process it does nothing. One process at a time.
    """
    done = {"called": 0, "failed": 0}
    if not any_hooks():
        return done
    begin_listening()
    until = time.monotonic() + BUDGET_SECONDS
    while _store_calls() and time.monotonic() < until:
        pass
    # A function may be a hook of both kinds.
    hooks = [(_due(name), _of_run(hook), name) for name, hook in run_hooks.items()]
    hooks += [
        (_due(name, of_submissions=True), _of_submission(hook), name)
        for name, hook in submission_hooks.items()
    ]
    for due, call, name in hooks:
        if not _call_due(due, call, name, done, budget=BUDGET_SECONDS / len(hooks)):
            break
    return done


def is_round_due() -> bool:
    """Say whether `call_hooks` has something to do; without a hook in this process, it has not."""
    return any_hooks() and (ends.is_take_due(LISTENER) or _is_any_due())


def begin_listening() -> None:
    """Have ends recorded if this process has a hook; repeating it changes nothing."""
    if any_hooks():
        ends.listen(LISTENER)


def drop_gone() -> None:
    """Drop old calls of hooks that this process does not know."""
    for row in sql.query(_GONE, [_names(), GONE_DAYS]):
        log_events.HOOK_GONE.log(logger, hook=row["hook"], count=row["count"])


def _store_calls() -> bool:
    """Take ends, and store a call of each hook for each; say whether there may be others."""
    with transaction.atomic():
        found = ends.take(LISTENER)
        calls = [
            HookCall(hook=name, run_id=end.run_id, facts=end.as_json())
            for end in found.runs
            for name in run_hooks
        ] + [
            HookCall(hook=name, submission_id=end.submission_id, facts=end.as_json())
            for end in found.submissions
            for name in submission_hooks
        ]
        HookCall.objects.bulk_create(calls)
    crash_point("hooks.after_take")
    return found.is_full


def _call_due(
    due: Iterable[HookCall],
    call: Callable[[Mapping[str, Any]], Any],
    name: str,
    done: dict[str, int],
    *,
    budget: float,
) -> bool:
    """Call one hook for its due ends while the budget lasts; say whether the round may go on."""
    until = time.monotonic() + budget
    for row in due:
        if time.monotonic() >= until:
            break
        begun = _begin(row)
        if begun > MOST_CALLS:
            # Each of its calls has ended its process: none came to an exception that is counted.
            _give_up(row, name, failures=MOST_CALLS, error="its process ended")
            continue
        crash_point("hooks.before_call")
        try:
            call(row.facts)
        except Exception as error:  # whatever a project's hook raises: the others are called
            done["failed"] += 1
            _note_failure(row, name, error, failures=begun)
            if isinstance(error, SoftTimeLimitExceeded):
                return False
        else:
            crash_point("hooks.after_call")
            HookCall.objects.filter(pk=row.pk).delete()
            done["called"] += 1
    return True


def _begin(row: HookCall) -> int:
    """Count a call as failed before it begins; return how many have failed with it."""
    try:
        with transaction.atomic():
            [begun] = sql.query(_BEGIN, [LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS, row.pk])
    except ROW_ERRORS:
        # Raw SQL has changed the count: it overflows.
        return MOST_CALLS + 1
    return int(begun["failures"])


def _is_any_due() -> bool:
    return bool(sql.query(_ANY_DUE, [_names()])[0]["found"])


def _names() -> list[str]:
    return [*run_hooks, *submission_hooks]


def _due(name: str, *, of_submissions: bool = False) -> Iterator[HookCall]:
    """Yield the due calls of a hook, a chunk at a time; the caller begins each before the next."""
    while due := list(HookCall.objects.raw(_DUE, [name, of_submissions, CHUNK])):
        yield from due


def _note_failure(row: HookCall, name: str, error: Exception, *, failures: int) -> None:
    facts = {"what": _what(row), "failures": failures, "error": type(error).__name__}
    if failures < MOST_CALLS:
        log_events.HOOK_FAILED.log(logger, hook=name, most=MOST_CALLS, exc_info=True, **facts)
        return
    _give_up(row, name, failures=failures, error=type(error).__name__, exc_info=True)


def _give_up(row: HookCall, name: str, *, failures: int, error: str, **options: Any) -> None:
    HookCall.objects.filter(pk=row.pk).delete()
    facts = {"what": _what(row), "failures": failures, "error": error}
    log_events.HOOK_GIVEN_UP.log(logger, hook=name, **facts, **options)


def _what(row: HookCall) -> str:
    return f"run {row.run_id}" if row.run_id else f"submission {row.submission_id}"


def _of_run(hook: Callable[[RunEnd], Any]) -> Callable[[Mapping[str, Any]], Any]:
    return lambda end: hook(RunEnd.from_json(end))


def _of_submission(hook: Callable[[SubmissionEnd], Any]) -> Callable[[Mapping[str, Any]], Any]:
    return lambda end: hook(SubmissionEnd.from_json(end))
