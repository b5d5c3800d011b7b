"""`manage.py plan`: a recorded load replayed with other weights, caps, windows or slots."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from datetime import datetime, timedelta
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from jobs.client.terminal import say
from jobs.management.arguments import number, whole
from jobs.management.command import SafeCommand

MOST_RUNS: Final = 1_000_000


class Command(SafeCommand):
    help = (
        "Replay the recorded load of a span through the fair queue, with what you change, and say "
        "each owner's waits, what misses its window, and how many slots an objective needs. "
        "Nothing is written. See docs/operate/planning.md."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--from", dest="start", type=_moment, help="default: a day before --to")
        parser.add_argument("--to", dest="end", type=_moment, help="default: now")
        parser.add_argument("--queue", default="", help="default: the first fair queue")
        parser.add_argument("--slots", type=int, help="default: as many as were recorded")
        for name, what in (
            ("weight", "OWNER=NUMBER"),
            ("cap", "OWNER=NUMBER, 0 for none"),
            ("window", "CALENDAR=HH:MM-HH:MM, CALENDAR=mon-fri HH:MM-HH:MM, or CALENDAR=always"),
        ):
            parser.add_argument(
                f"--{name}", action="append", default=[], help=f"{what}; may be repeated"
            )
        parser.add_argument(
            "--objective",
            nargs="?",
            const="",
            type=_seconds,
            help="find how many slots this wait objective needs: a number of seconds for all "
            "owners, or without a number each owner's own objective",
        )
        parser.add_argument(
            "--percent", type=number(50, 99.9), default=95.0, help="of starts (default 95)"
        )
        parser.add_argument(
            "--most-runs",
            type=whole(1, MOST_RUNS),
            default=100_000,
            help="if there are more runs, replay a sample of this size (default 100000)",
        )
        parser.add_argument("--json", action="store_true", help="one JSON object")

    def handle(self, *_args: Any, **given: Any) -> None:
        """Print the plan."""
        from jobs.core.errors import OptionError
        from jobs.forecast.replay.changes import read_changes
        from jobs.forecast.replay.plan import make_plan
        from jobs.management.plan_lines import as_dict, as_lines
        from jobs.system.rollups.histogram import GROWTH

        end = given["end"] or timezone.now()
        start = given["start"] or end - timedelta(days=1)
        try:
            changes = read_changes(
                slots=given["slots"],
                weights=given["weight"],
                caps=given["cap"],
                windows=given["window"],
            )
            plan = make_plan(
                start=start,
                end=end,
                changes=changes,
                growth=GROWTH,
                most_runs=given["most_runs"],
                queue=given["queue"],
                **_aims(given["objective"], given["percent"]),
            )
        except OptionError as error:
            raise CommandError(f"--{error.option}: {error.problem}") from error
        if given["json"]:
            say(json.dumps(as_dict(plan), default=str))
        else:
            for line in as_lines(plan):
                say(line)


def _aims(objective: float | str | None, percent: float) -> dict[str, Any]:
    """Return the wait objectives: each owner's own, or one for all; {} without `--objective`."""
    from jobs.forecast.replay.objective import Aim
    from jobs.forecast.replay.plan import stored_aims

    if objective is None:
        return {}
    if objective == "":
        return {"aims": stored_aims()}
    return {"aim": Aim(float(objective), percent / 100)}


def _moment(text: str) -> datetime:
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise ArgumentTypeError(f"{text!r:.80} is no time, such as 2026-03-02T08:00")
    return found if timezone.is_aware(found) else timezone.make_aware(found)


def _seconds(text: str) -> float | str:
    return number(0.001, 7 * 86_400.0)(text) if text else text
