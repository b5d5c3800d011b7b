"""`manage.py history`: what stays, what leaves, and runs from the archive."""

import json
from argparse import ArgumentTypeError
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from jobs.client.terminal import say
from jobs.management.command import SafeCommand


class Command(SafeCommand):
    help = "See how long history stays, remove what is old, and read archived runs back."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
        status = parts.add_parser(
            "status", help="days that history stays, disk, and the last round of retention"
        )
        listed = parts.add_parser("archive", help="files of the archive, by day")
        listed.add_argument(
            "--verify", action="store_true", help="read each file and compare its checksum"
        )
        read = parts.add_parser(
            "read",
            help="one run with its attempts as JSON, from its row or from the archive",
            description=(
                "The file is found by the time in the id. Columns of bytes are hex after \\x, as "
                "they were stored; arguments are decoded if their key is known."
            ),
        )
        read.add_argument("run", type=_run_id, metavar="RUN", help="the run's id")
        read.add_argument("--owner", help="only if it is a run of this owner: a slug")
        drop = parts.add_parser("drop", help="remove old history now, as the system worker does")
        drop.add_argument("--dry-run", action="store_true", help="count by reason, remove nothing")
        for part in (status, listed, read, drop):
            part.add_argument("--json", action="store_true", help="one JSON object")

    def handle(self, *_args: Any, **given: Any) -> None:
        """Run a part. The exit status is 1 if a file is damaged, or a run is not found."""
        from jobs.management import history
        from jobs.system.retention.archive import ArchiveError

        try:
            facts, lines = history.PARTS[given["part"]](given)
        except ArchiveError as error:
            raise CommandError(str(error)) from error
        if given["json"]:
            say(json.dumps(facts, default=str))
        else:
            for line in lines:
                say(line)


def _run_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r:.80} is no id of a run") from None
