"""The parts of `manage.py fleet` about tasks that no worker knows: list, move, fail."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError

from fleet import counted
from jobs.client.terminal import say


def add_parts(parts: Any) -> None:
    unknown = parts.add_parser(
        "unknown-tasks",
        help="waiting runs whose task no live worker of their queue knows",
        description=(
            "Per queue and task: how many runs wait, and how many of them are queued. Of a long "
            "backlog the oldest runs are looked at, so there may be more. Queues without a live "
            "worker are left out."
        ),
    )
    unknown.add_argument("--json", action="store_true", help="one JSON object")
    unknown.set_defaults(act_on=_list)
    move = parts.add_parser(
        "move-task",
        help="have the waiting runs and the recurring jobs of a task run another task",
        description=(
            "For a task that was renamed. Runs and jobs whose arguments the other task does not "
            "take stay as they are. What a worker has is left alone."
        ),
    )
    move.add_argument("task", metavar="TASK", help="the task that they name now")
    move.add_argument("to", metavar="NEW", help="the task that they are to run")
    fail = parts.add_parser(
        "fail-task",
        help="end the waiting runs of a task as failed",
        description=(
            "For a task that was removed. An operator's retry opens such a run again. Recurring "
            "jobs of the task stay as they are."
        ),
    )
    fail.add_argument("task", metavar="TASK", help="the task that they name")
    for part in (move, fail):
        part.set_defaults(act_on=_change)
        part.add_argument("--queue", default="", help="runs of this queue only, and no jobs")
        part.add_argument("--reason", default="", help="kept in the audit")
        part.add_argument("--dry-run", action="store_true", help="report only, change nothing")
        part.add_argument("--json", action="store_true", help="one JSON object")


def _list(given: dict[str, Any]) -> None:
    from jobs.runs.reads.unknown_tasks import unknown_tasks

    found = unknown_tasks()
    if given["json"]:
        say(json.dumps({"unknown_tasks": [asdict(each) for each in found]}))
        return
    for each in found:
        say(f"{each.queue}  {each.task}  {each.count:,} waiting, {each.due_count:,} queued")
    if not found:
        say("Live workers know the tasks of all waiting runs.")


def _change(given: dict[str, Any]) -> None:
    from jobs.core.errors import FairshiftError
    from jobs.runs.renamed_tasks import fail_task, move_task

    options = {
        "queue": given["queue"],
        "reason": given["reason"],
        "is_dry_run": given["dry_run"],
    }
    is_move = given["part"] == "move-task"
    try:
        if is_move:
            moved = move_task(given["task"], to=given["to"], **options)
        else:
            moved = fail_task(given["task"], **options)
    except FairshiftError as error:
        raise CommandError(str(error)) from error
    if given["json"]:
        facts = {"task": given["task"], "to": given.get("to"), "is_dry_run": given["dry_run"]}
        say(json.dumps({**facts, **asdict(moved)}))
        return
    would = "would be " if given["dry_run"] else ""
    if not is_move:
        say(f"{counted(moved.runs, 'run')} {would}failed.")
        if moved.jobs:
            say(f"{counted(moved.jobs, 'enabled job')} of {given['task']} will make more runs.")
        return
    moved_ones = f"{counted(moved.runs, 'run')} and {counted(moved.jobs, 'job')}"
    say(f"{moved_ones} {would}moved to {given['to']}.")
    for problem, count in moved.problems.most_common():
        say(f"{count:,} refused: {problem}")
