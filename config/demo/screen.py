"""The demo's progress: bars on a terminal, elsewhere lines every two seconds.

There is a bar for each submission, and one for each owner: its received and entitled share of
worker time.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TextIO

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

    def follow(self) -> "Bars | Lines":
        """Return a context manager that shows progress: pass changes to its `show`."""
        return Bars(self.console) if self.console.is_terminal else Lines(self.console)


class Bars:
    """A table that is redrawn in place."""

    def __init__(self, console: Console, /) -> None:
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, lines: Sequence[Line], parts: Sequence[Part] = (), /) -> None:
        self._live.update(Group(_table(lines), "", _shares(parts)), refresh=True)


class Lines:
    """Lines of text every two seconds, and at the end."""

    def __init__(self, console: Console, /) -> None:
        self._console = console
        self._next_at = 0.0
        self._unseen: tuple[Sequence[Line], Sequence[Part]] = (), ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._print(*self._unseen)

    def show(self, lines: Sequence[Line], parts: Sequence[Part] = (), /) -> None:
        self._unseen = lines, parts
        if time.monotonic() >= self._next_at:
            self._print(lines, parts)

    def _print(self, lines: Sequence[Line], parts: Sequence[Part]) -> None:
        for line in lines:
            self._console.print(_text(line), markup=False)
        if len(parts) > 1:
            shares = ", ".join(map(_share, parts))
            self._console.print(f"         share received / entitled: {shares}", markup=False)
        self._unseen = (), ()
        self._next_at = time.monotonic() + LINE_SECONDS


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
