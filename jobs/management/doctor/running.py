"""Workers, beat and what waits for them: the verdict of the overview, and how workers differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution

from fleet import counted
from jobs.core.version import __version__
from jobs.management.doctor.postgres import described
from jobs.models import Worker
from jobs.system.state import CLOCK_SECONDS
from jobs.system.verdict.operator import Operator
from jobs.system.verdict.reading import read
from jobs.system.verdict.rules import problems_of

IDS: Final[Mapping[str, str]] = {
    "old_transaction": "fairshift.D106",
    "prepared_transaction": "fairshift.D107",
    "replication_slot": "fairshift.D108",
    "no_worker": "fairshift.D301",
    "beat": "fairshift.D302",
    "system_worker": "fairshift.D303",
    "unserved": "fairshift.D304",
    "pulse": "fairshift.D305",
    "unpublished": "fairshift.D306",
    "late": "fairshift.D307",
    "unknown_task": "fairshift.D308",
    "lost_worker": "fairshift.D309",
    "unsent": "fairshift.D312",
    "statistics": "fairshift.D313",
    "clock": "fairshift.D314",
    "missing_rounds": "fairshift.D315",
    "unserved_stock": "fairshift.D316",
    "without_redis": "fairshift.D317",
}
"""The problems of the overview that are about the installation, by their codes. The others are
about jobs, windows and owners; Redis and routes have checks of their own."""
NAMED: Final = 5


def verdict() -> Iterator[CheckMessage]:
    """Report the problems of the overview that are about the installation."""
    for problem in problems_of(read(Operator()).facts):
        if problem.code in IDS:
            kind = Error if problem.is_bad else Caution
            yield kind(problem.text, hint=problem.todo, id=IDS[problem.code])


def versions() -> Iterator[CheckMessage]:
    """Report workers of several versions, and of another one than this code."""
    found = Counter(Worker.objects.beating().values_list("version", flat=True))
    if found.keys() - {__version__}:
        each = ", ".join(f"{counted(found[one], 'worker')} of {one}" for one in sorted(found))
        yield Caution(
            f"Versions are mixed: this code is {__version__}, and there are {each}.",
            hint="During an upgrade that is all right (docs/operate/upgrades.md). Otherwise install"
            " one version everywhere, and restart what is left of the other one.",
            id="fairshift.D310",
        )


def clocks() -> Iterator[CheckMessage]:
    """Report workers whose clock differs from PostgreSQL's, by their heartbeats."""
    wrong = {
        worker.hostname: worker.clock_ahead_seconds
        for worker in Worker.objects.beating()
        if abs(worker.clock_ahead_seconds or 0.0) > CLOCK_SECONDS
    }
    if wrong:
        each = [f"{name} {described(ahead or 0.0)} it" for name, ahead in sorted(wrong.items())]
        more = f" and {len(each) - NAMED:,} more" if len(each) > NAMED else ""
        yield Caution(
            f"Clocks of workers differ from PostgreSQL's: {', '.join(each[:NAMED])}{more}."
            " PostgreSQL's clock decides; times in their logs are wrong.",
            hint="Synchronize the clocks of all machines, for example with chrony.",
            id="fairshift.D311",
        )


LOOKS: Final = (verdict, versions, clocks)
