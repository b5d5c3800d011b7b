"""What the command prints: JSON, tables, progress. Tables are nicer with rich, and work without."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from jobs.client.terminal import printable, say

RUN_COLUMNS: Final = ("id", "owner", "task", "state", "target", "created_at", "progress", "error")
JOB_COLUMNS: Final = ("id", "owner", "key", "task", "schedule", "paused_until")


def print_json(value: Any) -> None:
    """Print one value on one line."""
    say(json.dumps(value, ensure_ascii=False))


def print_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Print rows as a table; texts are shown as they are, without control characters."""
    shown = [[cell(row.get(column)) for column in columns] for row in rows]
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        _print_plain([list(columns), *shown])
        return
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=column in {"id", "state"})
    for row in shown:
        table.add_row(*map(Text, row))
    # A pipe gets whole lines, of any width.
    width = None if sys.stdout.isatty() else 1_000
    Console(width=width, soft_wrap=True).print(table)


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print the fields of one row, a line each."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        sys.stdout.write(f"{name:<{width}}  {cell(value)}\n")


def cell(value: Any) -> str:
    """Return a value as the text of a cell."""
    if value is None:
        return ""
    if isinstance(value, dict) and set(value) == {"type", "message"}:
        # A caller that may not see arguments gets no message.
        known = (value["type"], value["message"])
        value = ": ".join(text for text in known if text is not None)
    if isinstance(value, dict) and set(value) == {"done", "total", "note", "at"}:
        value = progress_text(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return printable(text)


def progress_text(value: Mapping[str, Any]) -> str:
    """Return the progress of a run as a short text."""
    steps = f"{value['done']:,.10g}"
    if value["total"] is not None:
        steps += f" / {value['total']:,.10g}"
    return f"{steps} {value['note']}".rstrip()


@contextmanager
def progress(total: int) -> Iterator[Callable[[int, str], None]]:
    """Give the function that shows how many runs have ended, and how far a single run is.

    It shows a bar on the terminal; without a terminal, nothing.
    """
    if not sys.stderr.isatty():
        yield lambda _ended, _note: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield partial(_print_progress, total)
        return
    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("runs", total=total)
        yield lambda ended, note: bar.update(
            task, completed=ended, description=cell(note) or "runs"
        )


def _print_progress(total: int, ended: int, note: str) -> None:
    sys.stderr.write(f"\r{ended:,} of {total:,} ended {cell(note)}")
    sys.stderr.flush()


def _print_plain(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        line = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        sys.stdout.write(line.rstrip() + "\n")
