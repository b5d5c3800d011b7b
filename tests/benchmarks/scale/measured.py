"""The figures of the last full run of the benchmark `cost`, as its JSON file has them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

FILE: Final = Path(__file__).with_name("measured.json")
"""Written by `make bench WHAT=cost ARGS="--json tests/benchmarks/scale/measured.json"`."""

SUBMIT_MANY: Final = "submit_many, 1,000 runs a call"
SUBMIT: Final = "submit, one by one"
IDLE: Final = "1 worker, idle for a second"


def point_name(workers: int, ms: int) -> str:
    """Return the name of the row of this many workers and tasks of this length."""
    return f"{workers} worker{'s' if workers > 1 else ''}, tasks of {ms} ms"


SLOTS: Final = 4
"""Of each worker, as `make up` and Compose start it."""
TASK_MS: Final = (0, 5, 50)
ONE_WORKER: Final = tuple(point_name(1, ms) for ms in TASK_MS)

Medians = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Measured:
    """The medians by row and name."""

    conditions: Mapping[str, Any]
    medians: Medians


def measured(path: Path = FILE) -> Measured:
    """Return the figures of a JSON file of the benchmark."""
    written = json.loads(path.read_text(encoding="utf-8"))
    rows = [row for row in written["rows"] if row["member"] == "cost"]
    return Measured(
        conditions=written["conditions"],
        medians={
            row["what"]: {name: median(values) for name, values in row["samples"].items()}
            for row in rows
        },
    )
