"""The overview in a terminal, from the same facts as the page: as rows, text and JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fleet import counted
from jobs.client.terminal import printable
from jobs.core.states import State
from jobs.management import progress_lines
from jobs.management.owner_table import span
from jobs.owners.standing import Standing
from jobs.runs.reads.progress import Reporting
from jobs.system.verdict.facts import Problem
from jobs.system.verdict.reading import Read
from jobs.system.verdict.rules import problems_of

if TYPE_CHECKING:
    from rich.console import RenderableType

HEALTHY: Final = 0
DEGRADED: Final = 1
BROKEN: Final = 2
UNREADABLE: Final = 3
WORDS: Final = {HEALTHY: "healthy", DEGRADED: "degraded", BROKEN: "broken"}
HEADINGS: Final = ("owner", "running", "backlog", "oldest", "held", "failed 1 h")


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What one look at the installation says."""

    found: Read
    problems: Sequence[Problem]
    reporting: Sequence[Reporting] = ()
    """Runs whose tasks reported progress last."""

    @property
    def code(self) -> int:
        """The exit status."""
        if any(problem.is_bad for problem in self.problems):
            return BROKEN
        return DEGRADED if self.problems else HEALTHY

    @property
    def failed_count(self) -> int | None:
        """Runs that failed within an hour; None if nothing has been counted yet."""
        rolled = self.found.rolled
        if rolled.until is None:
            return None
        return sum(minute.outcomes.get(State.FAILED, 0) for minute in rolled.minutes)

    @property
    def oldest_wait_seconds(self) -> float:
        return max((one.wait_seconds for one in self.found.standings), default=0.0)

    @property
    def beat(self) -> str:
        """How beat is."""
        system = self.found.facts.system
        if system.is_silent:
            return "silent"
        return "leads" if system.is_beat_leading else "another scheduler sends"

    @property
    def has_system_worker(self) -> bool:
        return self.found.facts.system_queue in self.found.facts.system.queues


def status_of(found: Read, reporting: Sequence[Reporting] = ()) -> Status:
    """Return the status: the facts, the verdict of the overview, and progress of tasks."""
    return Status(found=found, problems=problems_of(found.facts), reporting=reporting)


def as_dict(status: Status, *, most: int) -> dict[str, Any]:
    """Return a status for JSON; spans in seconds. A number is null if it cannot be known now."""
    system, counts = status.found.facts.system, status.found.counts
    return {
        "at": system.at.isoformat(),
        "status": WORDS[status.code],
        "problems": [
            {
                "code": problem.code,
                "level": problem.level,
                "text": problem.text,
                "todo": problem.todo,
            }
            for problem in status.problems
        ],
        "workers": system.worker_count,
        "slots": system.slots,
        # More than 10,000 are not counted exactly.
        **{name: int(counts[name]) for name in ("running", "queued", "held", "retrying")},
        "oldest_wait_seconds": status.oldest_wait_seconds,
        "failed_last_hour": status.failed_count,
        "beat": status.beat,
        "has_system_worker": status.has_system_worker,
        "redis_answers": not status.found.facts.is_redis_away,
        "owners": [_owner(status.found, one) for one in busiest(status.found, most=most)],
        "progress": progress_lines.as_dicts(status.reporting),
    }


def busiest(found: Read, *, most: int) -> list[Standing]:
    """Return the owners with the largest backlogs, those with work only."""
    busy = [one for one in found.standings if one.seen and (one.seen.backlog or one.seen.running)]
    return sorted(busy, key=_by_backlog)[:most]


def _by_backlog(one: Standing) -> tuple[int, int, str]:
    seen = one.seen
    return (-seen.backlog, -seen.running, seen.name) if seen else (0, 0, one.owner.slug)


def _owner(found: Read, one: Standing) -> dict[str, Any]:
    held = None if found.held is None else found.held.get(one.owner.pk, {}).get(State.HELD, 0)
    return {
        "owner": one.owner.slug,
        "running": one.seen.running if one.seen else 0,
        "backlog": one.seen.backlog if one.seen else 0,
        "oldest_wait_seconds": one.seen.oldest_wait_seconds if one.seen else None,
        "held": held,
        "failed_last_hour": (
            None if found.rolled.until is None else found.failed.get(one.owner.pk, 0)
        ),
    }


def verdict_line(status: Status) -> str:
    """Return the verdict in one line: healthy, or the worst problem."""
    if not status.problems:
        return "Healthy: nothing needs attention."
    more = len(status.problems) - 1
    also = f" And {counted(more, 'more problem')}." if more else ""
    return f"{WORDS[status.code].capitalize()}: {printable(status.problems[0].text)}{also}"


def fact_lines(status: Status) -> Iterator[str]:
    """Yield the numbers of now."""
    system, counts = status.found.facts.system, status.found.counts
    yield (
        f"workers {system.worker_count:,}, slots {system.slots:,}   beat {status.beat}"
        f"   system worker {'runs' if status.has_system_worker else 'missing'}"
    )
    failed = "not counted yet" if status.failed_count is None else f"{status.failed_count:,}"
    yield (
        f"running {counts['running']}   queued {counts['queued']}   held {counts['held']}"
        f"   retrying {counts['retrying']}"
    )
    yield f"oldest wait {span(status.oldest_wait_seconds)}   failed in the last hour {failed}"


def problem_lines(status: Status) -> Iterator[str]:
    """Yield each problem with what to do about it."""
    for problem in status.problems:
        yield f"{'!' if problem.is_bad else '-'} {printable(problem.text)}"
        yield f"    do: {printable(problem.todo)}"


def owner_rows(status: Status, *, most: int) -> list[list[str]]:
    """Return the cells of the busiest owners, below HEADINGS."""
    rows = [_owner(status.found, one) for one in busiest(status.found, most=most)]
    return [
        [
            row["owner"],
            f"{row['running']:,}",
            f"{row['backlog']:,}",
            span(row["oldest_wait_seconds"]),
            "?" if row["held"] is None else f"{row['held']:,}",
            "?" if row["failed_last_hour"] is None else f"{row['failed_last_hour']:,}",
        ]
        for row in rows
    ]


def as_text(status: Status, *, most: int) -> str:
    """Return a status as plain text."""
    lines = [verdict_line(status), *problem_lines(status), *fact_lines(status)]
    rows = owner_rows(status, most=most)
    if rows:
        table = [list(HEADINGS), *rows]
        widths = [max(len(row[place]) for row in table) for place in range(len(HEADINGS))]
        lines += ["", *(_aligned(row, widths) for row in table)]
    if status.reporting:
        runs = progress_lines.rows(status.reporting)
        lines += ["", *("  ".join(row) for row in [progress_lines.HEADINGS, *runs])]
    return "\n".join(lines)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    first = row[0].ljust(widths[0])
    return "  ".join(
        [first, *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
    )


def as_renderable(status: Status, *, most: int) -> RenderableType:
    """Return a status for a terminal, in colours."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    style = {HEALTHY: "bold green", DEGRADED: "bold yellow", BROKEN: "bold red"}[status.code]
    # Text: rich must not read a name as markup.
    parts: list[RenderableType] = [Text(verdict_line(status), style=style)]
    parts += [Text(line) for line in (*problem_lines(status), *fact_lines(status))]
    rows = owner_rows(status, most=most)
    if rows:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for heading in HEADINGS:
            is_name = heading == HEADINGS[0]
            table.add_column(heading, justify="left" if is_name else "right", no_wrap=True)
        for row in rows:
            table.add_row(*(Text(cell, overflow="ellipsis", no_wrap=True) for cell in row))
        parts += [Text(), table]
    for row in progress_lines.rows(status.reporting):
        parts += [Text(), Text("  ".join(row[:-1]), style="dim"), Text(row[-1])]
    return Group(*parts)
