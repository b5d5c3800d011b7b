"""`manage.py doctor`: what is broken in this installation, and what to do about it."""

import sys
from typing import Any

from django.core.management.base import CommandParser, no_translations

from jobs.management.arguments import number
from jobs.management.command import SafeCommand


class Command(SafeCommand):
    help = (
        "Look at the settings, PostgreSQL, Redis, workers, beat and disks, and name what is broken "
        "with its fix. Ends within 5 s, also when a server hangs, and names what it could not "
        "examine by then. Changes nothing. The exit status is 0 if nothing is wrong, 1 if "
        "something is broken, 2 if there are warnings only. SILENCED_SYSTEM_CHECKS of the settings "
        "leaves ids out."
    )
    # They are a part of the examination, which has a deadline.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object")
        parser.add_argument(
            "--timeout",
            type=number(0.5, 600),
            default=3.5,
            help="seconds for all checks: 0.5 to 600 (default 3.5)",
        )

    @no_translations
    def handle(self, *_args: Any, **given: Any) -> None:
        """Print the diagnosis; exit with its status."""
        from jobs.management.doctor.examination import examine
        from jobs.management.doctor.printed import as_json, as_lines, exit_status

        found = examine(seconds=given["timeout"])
        if given["json"]:
            self.stdout.write(as_json(found))
        else:
            style = self.style
            for line in as_lines(found, bad=style.ERROR, warn=style.WARNING, good=style.SUCCESS):
                self.stdout.write_styled(line)
        if status := exit_status(found):
            sys.exit(status)
