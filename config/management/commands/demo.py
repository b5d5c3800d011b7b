"""`manage.py demo`: run thousands of jobs, and check on the devices what they did."""

import signal
import sys
import time
from contextlib import suppress
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from jobs.management.arguments import PORTS, interrupt, whole
from jobs.management.stack.stack import Stack, StackError

LOOK_SECONDS: Final = 0.25


class Command(BaseCommand):
    help = (
        "Start everything (PostgreSQL, Redis, site, workers, beat, Flower and a fleet of devices), "
        "let one owner update 3,000 devices and another one four, and ask the devices what they "
        "have. Stays up until Ctrl-C."
    )
    # The database may not be migrated yet, and the checks would ask it.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        count, port, seconds = whole(1, 100_000), whole(*PORTS), whole(1, 86_400)
        parser.add_argument("--exit", action="store_true", help="end after the verdict")
        parser.add_argument(
            "--json",
            action="store_true",
            help="print the verdict as one JSON object, the last line of standard output; "
            "everything else goes to standard error",
        )
        parser.add_argument("--devices", type=count, default=3000)
        parser.add_argument("--workers", type=whole(1, 64), default=2)
        parser.add_argument("--slots", type=whole(1, 256), default=8, help="of each worker")
        parser.add_argument("--port", type=port, default=8000, help="of the site, if it is free")
        parser.add_argument("--flower-port", type=port, default=5555, help="if it is free")
        parser.add_argument("--deadline", type=seconds, default=300, help="seconds for it all")

    def handle(self, *_args: Any, **given: Any) -> None:
        """Run the demo; the exit status is 1 if the verdict is not good, or a process has ended.

        A database with other data is refused before anything is written.
        """
        from config.demo.scenario import DemoError, Options, played_demo
        from config.demo.screen import Screen
        from config.playground import refuse_foreign_database

        refuse_foreign_database(with_user=True)
        options = Options(
            devices=given["devices"],
            workers=given["workers"],
            slots=given["slots"],
            port=given["port"],
            flower_port=given["flower_port"],
            deadline_seconds=given["deadline"],
        )
        screen = Screen(sys.stderr if given["json"] else sys.stdout)
        signal.signal(signal.SIGTERM, interrupt)
        is_good = False
        try:
            with played_demo(options, screen=screen) as played:
                verdict, is_good = played.verdict, played.verdict.is_good
                if given["json"]:
                    print(verdict.as_json(workers=options.workers, slots=options.slots), flush=True)
                if not given["exit"]:
                    screen.heading("Everything stays up. Ctrl-C ends it.")
                    _stay_up(played.stack)
        except (DemoError, StackError) as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            reason = " ".join(str(error).split())
            raise CommandError(
                f"The demo has ended, and PostgreSQL does not answer: {reason}. Its jobs stay"
                " switched on there."
            ) from error
        except KeyboardInterrupt:
            sys.exit(130)
        if not is_good:
            sys.exit(1)


def _stay_up(stack: Stack) -> None:
    """Return at Ctrl-C; raise StackError when a process ends by itself."""
    with suppress(KeyboardInterrupt):
        while True:
            stack.refuse_ended()
            time.sleep(LOOK_SECONDS)
