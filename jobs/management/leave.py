"""`manage.py fleet leave`: give jobs back to celery-beat, finish, and remove Fairshift's traces."""

from __future__ import annotations

import json
import time
from argparse import _SubParsersAction
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from celery import current_app
from django.core.management.base import CommandError

from fleet import BrokerUnavailable, counted, delete_keys, fair_queues, move_calls
from jobs.client.terminal import say
from jobs.core.conf import plain_queues, setting
from jobs.management.arguments import number

if TYPE_CHECKING:
    from jobs.definitions.beat_export import Exported
    from jobs.system.leaving import Left

LOOK_SECONDS: Final = 1.0
CELERYS_QUEUE: Final = "celery"


def add_part(parts: _SubParsersAction[Any]) -> None:
    """Add the part to the command."""
    part = parts.add_parser(
        "leave",
        help="go back to stock Celery: give jobs to celery-beat, finish, remove Fairshift's traces",
        description=(
            "Writes each job back to a PeriodicTask, waits until all runs have ended and all"
            " workers and beats are stopped, moves waiting plain calls to plain queues, and removes"
            " Fairshift's PeriodicTasks and its keys in Redis. It can be repeated after a break."
        ),
    )
    part.set_defaults(act_on=handle)
    part.add_argument("--plan", action="store_true", help="report only, change nothing")
    part.add_argument(
        "--timeout",
        type=number(0, 86_400),
        default=600.0,
        help="seconds to wait for runs to end, and for processes to stop (default 600)",
    )
    part.add_argument(
        "--default-queue",
        default=CELERYS_QUEUE,
        metavar="NAME",
        help="the queue of calls that name none after you have left (default: celery)",
    )
    part.add_argument(
        "--erase", action="store_true", help="drop Fairshift's tables as well, with all history"
    )
    part.add_argument("--no-input", action="store_true", help="do not ask before --erase")
    part.add_argument("--json", action="store_true", help="one JSON object")


def handle(given: dict[str, Any]) -> None:
    """Go as far as possible; raise CommandError that says what is to be done next."""
    from jobs.core.errors import FairshiftError

    try:
        (_plan if given["plan"] else _leave)(given)
    except BrokerUnavailable as error:
        raise CommandError(f"The broker does not answer: {error}") from error
    except FairshiftError as error:
        raise CommandError(str(error)) from error


def _plan(given: dict[str, Any]) -> None:
    from jobs.definitions.beat_export import export_beat
    from jobs.system.leaving import left

    report, now = export_beat(is_plan=True), left()
    if given["json"]:
        rows = [asdict(row) for row in report]
        say(json.dumps({"is_plan": True, "jobs": rows, "left": asdict(now)}, default=str))
        return
    _print_jobs(report)
    say(f"would wait for  {_listed({**now.work, **now.processes})}")
    say(f"would move      {counted(now.calls, 'plain call')} to plain queues")
    entries, keys = counted(now.entries, "PeriodicTask"), counted(now.keys, "key")
    say(f"would remove    {entries} of Fairshift, {keys} in Redis")


def _leave(given: dict[str, Any]) -> None:
    from django.db import DEFAULT_DB_ALIAS

    from jobs.definitions.beat_export import export_beat
    from jobs.system.leaving import erase, remove_entries
    from jobs.system.periodic import is_migrated

    is_whole = is_migrated(DEFAULT_DB_ALIAS)
    if not is_whole and not given["erase"]:
        raise CommandError("Fairshift's tables are not there: --erase removes the rest.")
    if given["erase"] and not given["no_input"]:
        _confirm()
    report: Sequence[Exported] = export_beat() if is_whole else ()
    is_quiet = given["json"]
    if not is_quiet:
        _print_jobs(report)
    if refused := sum(row.verdict == "refused" for row in report):
        raise CommandError(
            f"{counted(refused, 'job')} cannot become a PeriodicTask: change it, or switch it off,"
            " then repeat."
        )
    if is_whole:
        _wait(given["timeout"], is_quiet=is_quiet)
    timeout = setting("PUBLISH_TIMEOUT_SECONDS")
    moved = move_calls(current_app, _targets(given["default_queue"]), timeout=timeout)
    entries = remove_entries()
    own = {*plain_queues(), setting("JOBS_QUEUE")}
    keys = delete_keys(current_app, own, timeout=timeout)
    stays = erase() if given["erase"] else ["Fairshift's tables: --erase drops them"]
    if is_quiet:
        facts = {"moved": moved, "entries": entries, "keys": keys, "stays": stays}
        rows = [asdict(row) for row in report]
        say(json.dumps({"is_plan": False, "jobs": rows, **facts}, default=str))
        return
    say(f"moved         {counted(moved, 'plain call')} to plain queues")
    entry_count, key_count = counted(entries, "PeriodicTask"), counted(keys, "key")
    say(f"removed       {entry_count} of Fairshift, {key_count} in Redis")
    for one in stays:
        say(f"stays         {one}")


def _targets(default_queue: str) -> dict[str, str]:
    """Return the plain queue for the calls of each fair queue."""
    ours = setting("JOBS_QUEUE")
    return {queue: default_queue if queue == ours else queue for queue in fair_queues(current_app)}


def _wait(seconds: float, *, is_quiet: bool) -> None:
    """Wait until no work is left and no process runs; say what is waited for."""
    from jobs.system.leaving import left

    deadline = time.monotonic() + seconds
    shown = ""
    while True:
        now = left()
        if not now.work and not now.processes:
            return
        if (text := _next_step(now)) != shown and not is_quiet:
            say(f"waits         {text}", flush=True)
        shown = text
        if time.monotonic() >= deadline:
            raise CommandError(f"Not done within {seconds:g} s. {text}")
        time.sleep(LOOK_SECONDS)


def _next_step(now: Left) -> str:
    if not now.work:
        return f"All work is done. Stop {_listed(now.processes)}: Fairshift's, and web processes."
    if "workers" not in now.processes:
        return f"No worker runs. Start workers, or cancel: {_listed(now.work)}."
    return f"Work that is not done: {_listed(now.work)}."


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "nothing"


def _print_jobs(report: Sequence[Exported]) -> None:
    for row in report:
        why = ": ".join(part for part in (row.field, row.problem) if part) or _meant(row)
        say(f"{row.verdict:13} {row.owner}/{row.key} – {why}")


def _meant(row: Exported) -> str:
    """Return in words what becomes of a job."""
    text = "a new PeriodicTask" if row.is_new else "its PeriodicTask"
    if row.name != row.key:
        text += f" {row.name!r}"
    text += " is on" if row.is_on else " stays off"
    if row.is_on and row.due_at:
        text += f", due {row.due_at:%Y-%m-%d %H:%M:%S} UTC"
    return text + (f"; loses {', '.join(row.loses)}" if row.loses else "")


def _confirm() -> None:
    if input("Drop all tables of Fairshift, with the history of all runs? Type yes: ") != "yes":
        raise CommandError("Nothing was changed.")
