"""A process that follows requests, a JSON object a line: stands for a web process.

It answers each line with one of JSON: the seconds that it took and the result. Submits
are in the submitters' log. With FAULT set it dies at the named crash point.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import UUID

import django
from django.db import DatabaseError, InterfaceError, close_old_connections

from tests.chaos.edits import edit, upsert
from tests.flows import calendar_edits
from tests.judge.log import SubmitLog
from tests.submitter import submit_in_block


def main() -> None:
    """Do what each line of the input asks for, in order, until there are no more."""
    django.setup()
    log = SubmitLog(sys.argv[1])
    for line in sys.stdin:
        wanted = json.loads(line)
        close_old_connections()  # as Django does before each request
        began_at = time.monotonic()
        try:
            said = ACTS[wanted.pop("do")](log, **wanted)
        except (DatabaseError, InterfaceError) as error:
            # Whether it was committed is not known: the log says no more.
            said = {"unknown": type(error).__name__}
        answer = {"seconds": time.monotonic() - began_at, **said}
        print(json.dumps(answer), flush=True)


def submit(
    log: SubmitLog, *, key: str, task: str, calls: list[dict[str, Any]], **options: Any
) -> dict[str, Any]:
    """Submit these calls in a block, and commit it or roll it back."""
    usual = {"owner": "acme", "max_attempts": 30, "labels": {"judge_key": key}}
    options = {**usual, "rolls_back": False, **options}
    return {"ids": submit_in_block(log, key, task, calls, **options)}


def roll_out(
    log: SubmitLog, *, key: str, calls: list[dict[str, Any]], waves: dict[str, Any], **options: Any
) -> dict[str, Any]:
    """Submit calls of `chaos.stumble` in waves; return the submission's id."""
    from jobs import Waves, submit_many

    given = {"owner": "acme", "labels": {"judge_key": key}, "max_attempts": 4, **options}
    log.intend(key, count=len(calls))
    made = submit_many("chaos.stumble", calls, waves=Waves(**waves), backoff_seconds=0.1, **given)
    ids = [str(run_id) for run_id in made.runs.order_by("id").values_list("id", flat=True)]
    log.ok(key, ids)
    return {"submission": made.pk, "ids": ids}


def resume(log: SubmitLog, *, submission: int) -> dict[str, Any]:
    """Resume a stopped rollout."""
    from jobs.models import Submission
    from jobs.rollouts import verbs

    verbs.resume(Submission.objects.get(pk=submission))
    return {}


def cancel(log: SubmitLog, *, ids: list[str]) -> dict[str, Any]:
    """Cancel these runs; say how many moved."""
    from jobs.runs.cancellation import cancel_runs

    return {"cancelled": len(cancel_runs([UUID(key) for key in ids]))}


def retry(log: SubmitLog, *, ids: list[str]) -> dict[str, Any]:
    """Have an operator retry these runs; return the ids of those that were there and had ended."""
    from jobs.runs.manual_retry import reopen_runs

    return {"ids": [str(key) for key in reopen_runs([UUID(key) for key in ids])]}


def owner(log: SubmitLog, *, slug: str, **fields: Any) -> dict[str, Any]:
    """Have an owner with these fields."""
    from jobs.models import Owner

    Owner.objects.update_or_create(slug=slug, defaults=fields)
    return {}


def replay(log: SubmitLog, *, ids: list[str], times: int, task: str) -> dict[str, Any]:
    """Publish the hints of these runs again, so many times each."""
    from fleet import Hint
    from jobs.runs.dispatch import broker

    hints = [
        Hint(run_id=run_id, task=task, queue="jobs", owner="acme", priority=5) for run_id in ids
    ]
    for _ in range(times):
        broker().publish(hints, timeout=30)
    return {}


def call(log: SubmitLog, *, task: str, count: int, pause: float, first: int = 0) -> dict[str, Any]:
    """Call a plain task this often, with numbers; return those that the broker has confirmed.

    The errors of the others are counted by their class.
    """
    from celery import current_app

    confirmed: list[str] = []
    errors: Counter[str] = Counter()
    for number in range(first, first + count):
        try:
            current_app.send_task(task, [str(number)], queue="jobs", ignore_result=True)
            confirmed.append(str(number))
        except Exception as error:
            errors[type(error).__name__] += 1
        time.sleep(pause)
    return {"confirmed": confirmed, "errors": errors}


def calendar(log: SubmitLog, *, act: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Change a calendar."""
    return calendar_edits.ACTS[act](**facts)


_DONE = (submit, roll_out, resume, cancel, retry, owner, replay, call, upsert, edit, calendar)
ACTS: dict[str, Callable[..., dict[str, Any]]] = {act.__name__: act for act in _DONE}

if __name__ == "__main__":
    main()
