"""`manage.py fleet`: owners' shares, unknown tasks, API tokens, import of PeriodicTasks."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from fleet import BrokerUnavailable, Snapshot, counted
from jobs.client.terminal import say
from jobs.core.conf import setting
from jobs.management import celery_settings, leave, run, tokens, unknown
from jobs.management.arguments import number, whole
from jobs.management.command import SafeCommand

PIPE_WIDTH: Final = 200


class Command(SafeCommand):
    help = (
        "See how the workers are shared; find runs whose task no worker knows; make and revoke "
        "API tokens; take over PeriodicTasks as jobs, and give them back; print Celery's settings."
    )
    # Owners are read from Redis only, also when other parts are broken.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
        owners = parts.add_parser(
            "owners",
            help="owners by what they received of the workers",
            description=(
                "Per owner: weight; backlog, the messages that wait; leased (in JSON: running), "
                "the messages that workers have, at work or next, and the most they may; how "
                "long the oldest waits; worker seconds received since the queues began; the "
                "share that its weight entitles it to among those that have work now; the share "
                "that it received in the last seconds; and its state. The state is eligible, at "
                "cap, paused or resting (over its rate); when nothing waits it is running, or "
                "idle when nothing runs either."
            ),
        )
        owners.add_argument(
            "--json", action="store_true", help="one JSON object a snapshot, a line"
        )
        owners.add_argument("--watch", action="store_true", help="look again until Ctrl-C")
        owners.add_argument(
            "--seconds",
            type=number(0.1, 3600),
            default=1.0,
            help="over which the share received is measured, between two snapshots: 0.1 to 3600 "
            "(default 1)",
        )
        owners.add_argument(
            "--most",
            type=whole(1, 100_000),
            default=50,
            help="owners in the table (default 50); JSON has all",
        )
        owners.add_argument("names", nargs="*", metavar="OWNER", help="these only")
        owners.set_defaults(act_on=_owners)
        beat = parts.add_parser(
            "import-beat",
            help="take over django-celery-beat's PeriodicTasks as jobs",
            description=(
                "Makes a job of each PeriodicTask that is on, with its name as the key, and "
                "switches it off there in the same transaction. What a job would not do in the "
                "same way is refused, by its field, and goes on there."
            ),
        )
        beat.add_argument("--owner", required=True, help="whose jobs they become: a slug")
        beat.add_argument("--plan", action="store_true", help="report only, change nothing")
        beat.add_argument("--json", action="store_true", help="one JSON object")
        beat.set_defaults(act_on=_import_beat)
        unknown.add_parts(parts)
        tokens.add_part(parts)
        celery_settings.add_part(parts)
        run.add_part(parts)
        leave.add_part(parts)

    def handle(self, *_args: Any, **given: Any) -> None:
        """Run a part. The exit status is 1 if the broker does not answer, or lacks a name."""
        given["act_on"](given)


def _owners(given: dict[str, Any]) -> None:
    try:
        if given["json"]:
            _print_json(given)
        else:
            _show(given)
    except BrokerUnavailable as error:
        from jobs.runs import dispatch

        is_refused = dispatch.broker().refuses_password
        fault = "refuses the password" if is_refused else "does not answer"
        raise CommandError(f"The broker {fault}: {error}") from error
    except KeyboardInterrupt:
        sys.exit(130 if not given["watch"] else 0)


def _import_beat(given: dict[str, Any]) -> None:
    from jobs.core.errors import UnknownOwner
    from jobs.definitions.beat_import import import_beat

    try:
        report = import_beat(given["owner"], is_plan=given["plan"])
    except UnknownOwner as error:
        raise CommandError(str(error)) from error
    if given["json"]:
        facts = {"owner": given["owner"], "is_plan": given["plan"]}
        say(json.dumps({**facts, "entries": [asdict(row) for row in report]}, default=str))
        return
    for row in report:
        why = ": ".join(part for part in (row.field, row.problem) if part) or _meant(row)
        say(f"{row.verdict:13} {row.name} – {why}")
    count = sum(row.job is not None for row in report)
    would = "would become jobs" if given["plan"] else "became jobs"
    say(f"{count} of {sum(not row.is_ours for row in report)} {would} of {given['owner']}")


def _meant(row: Any) -> str:
    """Return in words how often a job's run is tried, and when the job is due, now and before."""
    text = counted(row.attempts, "attempt")
    if row.attempts > 1:
        text += f" on {', '.join(row.retry_on)}" if row.retry_on else " on any error"
    before = row.due_before
    if before is not None and before <= row.at:
        text += f", runs once at once: due since {_shown(before)}"
    if row.due_at is None:
        return f"{text}, never due again"
    text += f", due {_shown(row.due_at)}"
    is_moved = before is not None and row.at < before != row.due_at
    return f"{text}, before: {_shown(before)}" if is_moved else text


def _shown(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _print_json(given: dict[str, Any]) -> None:
    from jobs.management.owner_table import as_rows

    for before, after in _snapshots(given):
        rows = as_rows(after, since=before, names=given["names"])
        say(json.dumps({"at": after.at, "owners": rows}), flush=True)


def _show(given: dict[str, Any]) -> None:
    try:
        from rich.console import Console
        from rich.live import Live
    except ModuleNotFoundError as error:
        raise CommandError(
            "The table needs rich: pip install 'rich>=14', or fairshift with its extra "
            "`terminal`. --json does without."
        ) from error

    from jobs.management.owner_table import as_table

    console = Console()
    if not console.is_terminal:
        # Nobody's screen: as wide as the longest name needs.
        console = Console(width=PIPE_WIDTH)
    is_live = given["watch"] and console.is_terminal
    with Live(console=console, auto_refresh=False) if is_live else nullcontext() as live:
        for before, after in _snapshots(given):
            table = as_table(after, since=before, most=given["most"], names=given["names"])
            if live is None:
                console.print(table)
            else:
                live.update(table, refresh=True)


def _snapshots(given: dict[str, Any]) -> Iterator[tuple[Snapshot, Snapshot]]:
    """Yield pairs of snapshots: once, or until Ctrl-C with --watch."""
    before = _snapshot()
    unknown = [name for name in given["names"] if name not in before.owners]
    if unknown:
        raise CommandError(
            f"Nobody named {', '.join(unknown)} is known to the fair queues. An owner is known "
            "there once it has had work or a limit; without names, all are listed."
        )
    while True:
        time.sleep(given["seconds"])
        after = _snapshot()
        yield before, after
        if not given["watch"]:
            return
        before = after


def _snapshot() -> Snapshot:
    from jobs.runs.dispatch import owners

    return owners().snapshot(timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
