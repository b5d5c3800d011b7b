"""`manage.py secrets`: make an encryption key, see which are in use, re-encrypt rows."""

import sys
import time
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError, CommandParser

from jobs.client.terminal import say
from jobs.core import crypto
from jobs.core.conf import how_to_set
from jobs.core.keyring import MOST_ID, new_key
from jobs.management.arguments import whole
from jobs.management.command import SafeCommand

REPORT_SECONDS: Final = 1.0


class Command(SafeCommand):
    help = "Make an encryption key; count the rows of each key; rewrite rows under one key."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
        make = parts.add_parser("make-key", help="print a new random key")
        make.add_argument(
            "--id", type=whole(1, MOST_ID), help="its id (default: one more than the ring has)"
        )
        parts.add_parser("status", help="count rows by key, and name the keys that may go")
        again = parts.add_parser(
            "reencrypt",
            help="rewrite all rows under one key",
            description=(
                "Rewrites rows of other keys and unencrypted ones, in short transactions. It may "
                "be stopped at any time, and continues when it is called again."
            ),
        )
        again.add_argument(
            "--to",
            type=whole(0, MOST_ID),
            help="the id of the key (default: the ring's last one); 0 decrypts",
        )

    def handle(self, *_args: Any, **given: Any) -> None:
        """Run a part. The exit status is 1 if rows cannot be read, or are left."""
        try:
            if given["part"] == "make-key":
                ids = crypto.key_ids() if given["id"] is None else []
                say(new_key(given["id"] or max(ids, default=0) + 1))
            elif given["part"] == "status":
                _status()
            else:
                _reencrypt(given["to"])
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from None
        except KeyboardInterrupt:
            sys.exit(130)


def _status() -> None:
    from jobs.system.reencryption import keys_in_use

    ring = crypto.ring()
    rows = keys_in_use()
    known = [] if ring is None else ring.ids
    for key in sorted({*known, *(row["key"] for row in rows)}):
        parts = [f"{row['count']:,} {row['part']}" for row in rows if row["key"] == key]
        name = f"key {key}" if key else "in clear"
        say(f"{name:10} {', '.join(parts) or 'nothing'}{_note(key, parts, ring)}")
    if ring is None:
        say(f"No key ring: set {how_to_set('ENCRYPTION_KEYS')}.")


def _note(key: int, parts: list[str], ring: Any) -> str:
    """Return what to know of a key: it encrypts, is missing, or may go."""
    if ring is not None and key == ring.newest.id:
        return " (encrypts)"
    if key and (ring is None or key not in ring.keys):
        return " (missing here)"
    if not key and crypto.is_required():
        return " (refused)"
    return " (may go)" if key and not parts else ""


def _reencrypt(to: int | None) -> None:
    from jobs.system.reencryption import Done, reencrypt

    if to is None:
        ring = crypto.ring()
        if ring is None:
            raise CommandError("There is no key ring; --to 0 would decrypt.")
        to = ring.newest.id
    last = time.monotonic()

    def report(done: Done) -> None:
        nonlocal last
        if time.monotonic() - last >= REPORT_SECONDS:
            last = time.monotonic()
            say(_counts(done), flush=True)

    done = reencrypt(to, report=report)
    say(f"{_counts(done)}: done")
    for problem, count in done.problems.most_common():
        say(f"not rewritten: {count:,} where {problem}")
    if done.problems or done.left:
        raise CommandError(
            f"{done.left + sum(done.problems.values()):,} rows are left: call again, or see above."
        )
    if to and not crypto.is_required():
        name = how_to_set("ENCRYPTION_REQUIRED")
        say(f"Every row is encrypted. To refuse others from now on, turn {name} on.")


def _counts(done: Any) -> str:
    from jobs.system.reencryption import PARTS

    return "rewritten: " + ", ".join(f"{done.rewritten[name]:,} {name}" for name in PARTS)
