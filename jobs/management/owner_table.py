"""Owners' state and received shares, as rows for JSON and as a table. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from fleet import OwnerState, Snapshot

if TYPE_CHECKING:
    from rich.table import Table

RUNNING: Final = "running"
"""The state of an owner that has leased messages, and none that wait."""

COLOURS: Final = {
    OwnerState.ELIGIBLE: "green",
    RUNNING: "green",
    OwnerState.AT_CAP: "yellow",
    OwnerState.PAUSED: "magenta",
    OwnerState.RESTING: "yellow",
    OwnerState.IDLE: "dim",
}


def as_rows(
    snapshot: Snapshot, *, since: Snapshot, names: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Return a row for each owner, or for each of these, for JSON; shares are parts of 1.

    `received` is since the earlier snapshot; `running` counts leased messages.
    """
    entitled, received = snapshot.entitled(), snapshot.received(since=since)
    return [
        {
            "owner": owner.name,
            "weight": owner.weight,
            "backlog": owner.backlog,
            "running": owner.running,
            "max_running": owner.max_running,
            "oldest_wait_seconds": owner.oldest_wait_seconds,
            "worker_seconds": owner.worker_seconds,
            "entitled": entitled[owner.name],
            "received": received[owner.name],
            "state": RUNNING if owner.state is OwnerState.IDLE and owner.running else owner.state,
        }
        for owner in sorted(
            snapshot.owners.values(),
            key=lambda one: (-one.running - one.backlog, -one.weight, one.name),
        )
        if not names or owner.name in names
    ]


def as_table(
    snapshot: Snapshot, *, since: Snapshot, most: int, names: Collection[str] = ()
) -> Table:
    """Return a table, 80 columns wide, of the owners with most work; it counts the others."""
    from rich.table import Table
    from rich.text import Text

    rows = as_rows(snapshot, since=since, names=names)
    more = len(rows) - most
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        caption=f"and {more:,} more: --most, or names" if more > 0 else None,
        caption_justify="left",
    )
    table.add_column("owner")
    for name in ("weight", "backlog", "leased", "oldest", "worker s", "entitled", "received"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for row in rows[:most]:
        cap = f" / {row['max_running']:,}" if row["max_running"] else ""
        table.add_row(
            # Text: rich must not read a name as markup. Rich shrinks the column that may wrap.
            Text(row["owner"], no_wrap=True, overflow="ellipsis"),
            f"{row['weight']:g}",
            f"{row['backlog']:,}",
            f"{row['running']:,}{cap}",
            span(row["oldest_wait_seconds"]),
            f"{row['worker_seconds']:,.1f}",
            f"{row['entitled']:.1%}",
            f"{row['received']:.1%}",
            Text(row["state"], style=COLOURS[row["state"]]),
        )
    return table


def span(seconds: float | None) -> str:
    """Return a span of time in words."""
    if seconds is None:
        return "–"
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
