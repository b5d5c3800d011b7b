"""`manage.py status`: the overview in a terminal, for people and monitors."""

import json
import sys
import time
from contextlib import nullcontext
from functools import partial
from threading import Event
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandParser, no_translations
from django.db import Error as DatabaseError
from django.db import connection

from jobs.management.arguments import number, whole
from jobs.management.command import SafeCommand
from jobs.management.deadline import begin

DEADLINE_SECONDS: Final = 4.0
"""For one look, unless --timeout says another one."""
PROGRESS_SHOWN: Final = 5
"""Runs whose progress is shown at most."""


class Command(SafeCommand):
    help = (
        "Show the verdict of the overview page, what runs and waits, the owners with the "
        "largest backlogs, and the progress that tasks reported last. The exit status is 0 if all "
        "is healthy, 1 if it is degraded (something needs attention), 2 if something is broken, "
        "3 if the status cannot be read in time. With --watch it is 0."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object a look, a line")
        parser.add_argument("--watch", action="store_true", help="look again until Ctrl-C")
        parser.add_argument(
            "--seconds",
            type=number(0.5, 3600),
            default=2.0,
            help="between two looks: 0.5 to 3600 (default 2)",
        )
        parser.add_argument(
            "--timeout",
            type=number(0.5, 600),
            default=DEADLINE_SECONDS,
            help=f"seconds for one look: 0.5 to 600 (default {DEADLINE_SECONDS:g})",
        )
        parser.add_argument(
            "--most", type=whole(0, 20), default=10, help="owners that are shown (default 10)"
        )

    @no_translations
    def handle(self, *_args: Any, **given: Any) -> None:
        """Look once and exit with the status; or look until Ctrl-C."""
        try:
            if given["watch"]:
                self._watch(given)
            else:
                self._once(given)
        except KeyboardInterrupt:
            sys.exit(0 if given["watch"] else 130)

    def _once(self, given: dict[str, Any]) -> None:
        from jobs.management.status_lines import UNREADABLE

        try:
            status = _look(given["timeout"])
        except Unreadable as error:
            if given["json"]:
                self.stdout.write(json.dumps({"status": "unreadable", "reason": str(error)}))
            self.stderr.write(f"The status cannot be read: {error}")
            sys.exit(UNREADABLE)
        self._show(status, given)
        if status.code:
            sys.exit(status.code)

    def _watch(self, given: dict[str, Any]) -> None:
        live = None if given["json"] else _live()
        with live or nullcontext():
            while True:
                try:
                    self._show(_look(given["timeout"]), given, live)
                except Unreadable as error:
                    self._say(f"The status cannot be read: {error}", given, live)
                time.sleep(given["seconds"])

    def _say(self, text: str, given: dict[str, Any], live: Any) -> None:
        if live is not None:
            from rich.text import Text

            live.update(Text(text), refresh=True)
            return
        unreadable = json.dumps({"status": "unreadable", "reason": text})
        self.stdout.write(unreadable if given["json"] else text)
        self.stdout.flush()

    def _show(self, status: Any, given: dict[str, Any], live: Any = None) -> None:
        from jobs.management.status_lines import as_dict, as_renderable, as_text

        most = given["most"]
        if live is not None:
            live.update(as_renderable(status, most=most), refresh=True)
            return
        is_json = given["json"]
        text = json.dumps(as_dict(status, most=most)) if is_json else as_text(status, most=most)
        self.stdout.write(text)
        self.stdout.flush()


class Unreadable(Exception):
    """The status is not there in time; the message has the reason."""


def _look(seconds: float) -> Any:
    has_answered = Event()
    try:
        return begin(partial(_read, has_answered)).result(seconds)
    except TimeoutError:
        reason = f"PostgreSQL has not answered within {seconds:g} s."
        if has_answered.is_set():
            reason = (
                f"it was not ready within {seconds:g} s, though PostgreSQL answers. A busy machine"
                " needs a longer --timeout."
            )
        raise Unreadable(reason) from None
    except (DatabaseError, ImproperlyConfigured) as error:
        raise Unreadable(" ".join(str(error).split())) from error


def _read(has_answered: Event) -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    has_answered.set()
    # These may take seconds on a busy machine.
    from jobs.management.status_lines import status_of
    from jobs.runs.reads.progress import newest_progress
    from jobs.system.verdict.operator import Operator
    from jobs.system.verdict.reading import read

    return status_of(read(Operator()), newest_progress(most=PROGRESS_SHOWN))


def _live() -> Any:
    """Return rich's live display; None without rich, and if the output is no terminal."""
    try:
        from rich.console import Console
        from rich.live import Live
    except ModuleNotFoundError:
        return None
    console = Console()
    if not console.is_terminal:
        return None
    return Live(console=console, auto_refresh=False)
