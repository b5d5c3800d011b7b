"""What is printed and written: the conditions first, then one table."""

import os
import platform
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from tests.benchmarks.rows import Row
from tests.benchmarks.servers import DURABLE, shown
from tests.benchmarks.sides import Side
from tests.benchmarks.world import World

SETTINGS = (
    "broker_transport_options",
    "task_acks_late",
    "task_reject_on_worker_lost",
    "task_ignore_result",
    "worker_prefetch_multiplier",
    "worker_send_task_events",
    "worker_disable_rate_limits",
)
LIBRARIES = ("celery", "kombu", "redis", "hiredis", "Django")


def conditions(world: World) -> dict[str, Any]:
    """Return what the figures were measured on: the machine, and what each side runs with."""
    from fleet.transport.held_leases import BUFFER_US

    window = f"a message a slot, and {BUFFER_US / 1000:g} ms of known run time for each"
    return {
        "machine": {
            "cores": len(os.sched_getaffinity(0)),
            "processor": _processor(),
            "python": platform.python_version(),
            "redis server": world.redis.info("server")["redis_version"],
            **{f"postgresql {name}": shown(name) for name in ("server_version", *DURABLE)},
            **{name: version(name) for name in LIBRARIES},
        },
        "fair (as shipped)": {**_side(world.fair), "window": window},
        "stock (baseline)": _side(world.stock),
        "date": datetime.now(UTC).date().isoformat(),
        "rounds": world.rounds,
        "quick": world.is_quick,
    }


def print_conditions(found: Mapping[str, Any], console: Console) -> None:
    """Print them, a line each."""
    for name, value in found.items():
        if isinstance(value, Mapping):
            console.print(name, style="bold")
            for key, item in value.items():
                console.print(f"  {key}: {item}", highlight=False, markup=False)
        else:
            console.print(f"{name}: {value}", highlight=False)


def print_rows(rows: Mapping[str, list[Row]], console: Console) -> None:
    """Print the one table."""
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("member", "what"):
        table.add_column(name)
    for name in ("figure", "baseline", "ratio", "spread"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("against", "target", "ok?"):
        table.add_column(name)
    for member, found in rows.items():
        for number, row in enumerate(found):
            table.add_row(
                member if number == 0 else "",
                row.what,
                f"{_number(row.figure)} {row.unit}",
                "" if row.baseline is None else _number(row.baseline),
                "" if row.ratio is None else f"{row.ratio:.2f}×",
                "" if row.spread is None else "{:.2f}–{:.2f}".format(*row.spread),
                row.against,
                row.target,
                {True: "yes", False: "NO", None: ""}[row.is_met],
            )
    console.print(table)


def _side(side: Side) -> dict[str, Any]:
    with side.app.connection_for_write() as connection:
        transport = type(connection.transport)
        program = side.program("bench", 2)
        return {
            "transport": f"{transport.__module__}.{transport.__qualname__}",
            **{name: side.app.conf.get(name) for name in SETTINGS},
            "worker of 2 slots": shlex.join(["python", *program.command[1:]]),
        }


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _processor() -> str:
    with open("/proc/cpuinfo") as lines:
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
