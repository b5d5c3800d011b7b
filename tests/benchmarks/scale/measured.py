"""The figures of the last full run of the benchmark `cost`, as its JSON file has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from tests.benchmarks.scale.calibration import Point, calibrated
from tests.benchmarks.scale.costs import Costs, Layout

FILE: Final = Path(__file__).with_name("measured.json")
"""Written by `make bench WHAT=cost ARGS="--json tests/benchmarks/scale/measured.json"`."""

SUBMIT_MANY: Final = "submit_many, 1,000 runs a call"
SUBMIT: Final = "submit, one by one"
IDLE: Final = "1 worker, idle for a second"
FLUSH: Final = "flush of a commit"
CROWDED: Final = "a core beside busy ones"


def point_name(workers: int, ms: int) -> str:
    """Return the name of the row of this many workers and tasks of this length."""
    return f"{workers} worker{'s' if workers > 1 else ''}, tasks of {ms} ms"


SLOTS: Final = 4
"""Of each worker, as `make up` and Compose start it."""
TASK_MS: Final = (0, 5, 50)
"""With one worker, these calibrate the simulation."""
CALIBRATING: Final = tuple(point_name(1, ms) for ms in TASK_MS)

Medians = Mapping[str, Mapping[str, float]]


def costs_of(medians: Medians, *, cores: int) -> Costs:
    """Return the costs by the points of one worker on a machine with this many cores."""
    short, middle, long = (
        Point(ms / 1000, cost, cost["runs/s"])
        for ms, name in zip(TASK_MS, CALIBRATING, strict=True)
        for cost in [medians[name]]
    )
    return calibrated(
        short,
        middle,
        long,
        layout_of(medians, 1, TASK_MS[0], cores=cores),
        commit_seconds=medians[FLUSH]["seconds"],
        background=medians[IDLE]["CPU ms/s"] / 1000,
        crowding=medians[CROWDED]["part"],
    )


def layout_of(medians: Medians, workers: int, ms: int, *, cores: int) -> Layout:
    """Return the layout of a point, with the cores that other programs left."""
    left = cores - medians[point_name(workers, ms)]["cores of others"]
    return Layout(workers, SLOTS, left)


@dataclass(frozen=True)
class Measured:
    """The medians by row and name; `simulated` are the rates of the rows that have one."""

    conditions: Mapping[str, Any]
    medians: Medians
    simulated: Mapping[str, float]

    @property
    def cores(self) -> int:
        return int(self.conditions["machine"]["cores"])


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
        simulated={row["what"]: row["baseline"] for row in rows if row["baseline"]},
    )
