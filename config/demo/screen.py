"""The demo's progress: bars on a terminal, elsewhere lines every two seconds.

There is a bar for each submission, and one for each owner: its received and entitled share of
worker time.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

LINE_SECONDS = 2.0
NO_WORK = "–"


@dataclass(frozen=True, slots=True)
class Line:
    """A submission's state: counts of its runs, and the time since its submit."""

    label: str
    total: int
    succeeded: int
    failed: int
    running: int
    retrying: int
    seconds: float
    held: int = 0

    @property
    def done(self) -> int:
        return self.succeeded + self.failed

    @property
    def waiting(self) -> int:
        return self.total - self.done - self.running - self.retrying - self.held

    @property
    def rate(self) -> float:
        """Runs done per second since the submit."""
        return self.done / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Part:
    """An owner's shares, as parts of 1, over the last seconds.

    `has_work`: whether anything of it ran or waited then.
    """

    owner: str
    entitled: float
    received: float
    waiting: int
    running: int
    has_work: bool = True


Show = Callable[[Sequence[Line], Sequence[Part]], None]
"""Shows the progress of submissions, and the shares of owners."""


class Screen:
    """Writes texts and progress to one stream."""

    def __init__(self, stream: TextIO, /) -> None:
        # Without a terminal, rich would wrap at 80 columns, within addresses.
        self.console = Console(
            file=stream, highlight=False, soft_wrap=True, width=None if stream.isatty() else 200
        )

    def say(self, text: str = "") -> None:
        self.console.print(text, markup=False)

    def heading(self, text: str) -> None:
        self.console.print(text, style="bold", markup=False)

    @contextmanager
    def follow(self) -> Iterator[Show]:
        """Give the function that shows progress: a table that is redrawn in place, or lines."""
        if self.console.is_terminal:
            with Live(console=self.console, auto_refresh=False) as live:
                yield lambda lines, parts: live.update(
                    Group(_table(lines), "", _shares(parts)), refresh=True
                )
            return
        lines = _Lines(self)
        try:
            yield lines.show
        finally:
            lines.flush()


class _Lines:
    """Lines of text every two seconds, and at the end."""

    def __init__(self, screen: Screen, /) -> None:
        self._screen = screen
        self._next_at = 0.0
        self._unseen: tuple[Sequence[Line], Sequence[Part]] = (), ()

    def show(self, lines: Sequence[Line], parts: Sequence[Part], /) -> None:
        self._unseen = lines, parts
        if time.monotonic() >= self._next_at:
            self.flush()
            self._next_at = time.monotonic() + LINE_SECONDS

    def flush(self) -> None:
        (lines, parts), self._unseen = self._unseen, ((), ())
        for line in lines:
            self._screen.say(_text(line))
        if len(parts) > 1:
            shares = ", ".join(map(_share, parts))
            self._screen.say(f"         share received / entitled: {shares}")


def _text(line: Line) -> str:
    return (
        f"{line.seconds:5.1f} s  {line.label}: {line.done}/{line.total} done, "
        f"{line.running} running, {line.waiting} waiting, {line.retrying} retrying"
        + (f", {line.held} held" if line.held else "")
        + (f", {line.failed} failed" if line.failed else "")
        + f" ({line.rate:.0f}/s)"
    )


def _table(lines: Sequence[Line]) -> Table:
    # Fits 80 columns: failed and held runs have a column only if there are any.
    names = ["done", "running", "waiting", "retrying", "/s", "time"]
    names += ["in hold"] if any(line.held for line in lines) else []
    names += ["failed"] if any(line.failed for line in lines) else []
    table = _empty_table("submission", names)
    for line in lines:
        figures = {
            "done": f"{line.done}/{line.total}",
            "running": str(line.running),
            "waiting": str(line.waiting),
            "retrying": str(line.retrying),
            "/s": f"{line.rate:.0f}",
            "time": f"{line.seconds:.1f} s",
            "in hold": str(line.held),
            "failed": str(line.failed),
        }
        bar = ProgressBar(total=max(line.total, 1), completed=line.done)
        table.add_row(line.label, bar, *(figures[name] for name in names))
    return table


def _empty_table(first: str, figures: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(first, no_wrap=True)
    table.add_column("", min_width=8, max_width=32)
    for name in figures:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _share(part: Part) -> str:
    if not part.has_work:
        return f"{part.owner} {NO_WORK}"
    return f"{part.owner} {part.received:.0%} / {part.entitled:.0%}"


def _shares(parts: Sequence[Part]) -> Table:
    table = _empty_table("owner", ("worker time", "entitled to", "waiting", "running"))
    for part in parts:
        shares = (f"{part.received:.0%}", f"{part.entitled:.0%}")
        figures = (*(shares if part.has_work else (NO_WORK, NO_WORK)), part.waiting, part.running)
        bar = ProgressBar(total=1, completed=part.received)
        table.add_row(part.owner, bar, *map(str, figures))
    return table
