"""The tables of docs/operate/scale.md, from the last full run of the benchmark. Pure."""

from collections.abc import Sequence
from typing import Final

from tests.benchmarks.scale.measured import (
    IDLE,
    ONE_WORKER,
    SLOTS,
    SUBMIT,
    SUBMIT_MANY,
    TASK_MS,
    Measured,
    point_name,
)

A_DAY: Final = 100_000_000
DAY_SECONDS: Final = 86_400
PEAK: Final = 0.1
"""The part of a day's runs in its busiest hour."""
PEAK_RATE: Final = A_DAY * PEAK / 3_600
STEPS: Final = (
    ("1 machine for all, 2 cores", 1, 32),
    ("1 machine for all, 8 cores", 4, 32),
    ("PostgreSQL 4 cores, workers apart", 8, 64),
    ("PostgreSQL 8 cores", 24, 64),
)
"""What runs where, how many workers, and the slots of each."""
KINDS: Final = (
    ("caller", "CPU of the caller, µs"),
    ("worker, main process", "CPU of the worker's main process, µs"),
    ("worker, children", "CPU of its children, µs"),
    ("PostgreSQL", "CPU of PostgreSQL, µs"),
    ("Redis", "CPU of Redis, µs"),
    ("system worker", "CPU of the system worker, µs"),
)
COUNTS: Final = (
    ("WAL bytes", "WAL, bytes"),
    ("commits of PostgreSQL", "commits of PostgreSQL"),
    ("bytes on disk", "disk before a vacuum, bytes"),
)


def conditions(measured: Measured) -> str:
    """Return a sentence on the machine and its day."""
    machine = measured.conditions["machine"]
    others = max(row.get("cores of others", 0.0) for row in measured.medians.values())
    kind = ", a quick trial and no full measurement" if measured.conditions["quick"] else ""
    rounds = measured.conditions["rounds"]
    return (
        f"{measured.conditions['date']}{kind}: {machine['cores']} shared cores"
        f" ({machine['processor']}), PostgreSQL {machine['postgresql server_version']}, Redis"
        f" {machine['redis server']}, Python {machine['python']}, median of"
        f" {rounds} round{'s' if rounds > 1 else ''}; other programs used up to {others:.2f} cores."
    )


def run_costs(measured: Measured) -> str:
    """Return what a submit and a run cost."""
    shortest_and_longest = (TASK_MS[0], TASK_MS[-1])
    points = [point_name(1, ms) for ms in shortest_and_longest]
    columns = [SUBMIT_MANY, SUBMIT, *points, IDLE]
    heads = ["of one run", "`submit_many`", "`submit`"]
    heads += [f"task of {ms} ms" for ms in shortest_and_longest] + ["a second of an idle worker"]
    rows = [
        [label, *(_cell(measured, column, f"CPU µs, {kind}") for column in columns)]
        for kind, label in KINDS
    ]
    rows += [
        [label, *(_cell(measured, column, name) for column in columns)] for name, label in COUNTS
    ]
    return f"{conditions(measured)}\n\n{_table(heads, rows)}"


def _cell(measured: Measured, column: str, name: str) -> str:
    value = measured.medians[column].get(name)
    return "–" if value is None else _number(value)


def run_ceilings(measured: Measured) -> str:
    """Return what 100 million runs a day need of the two servers in the busiest hour."""
    batched = _need(measured, SUBMIT_MANY, ONE_WORKER[0])
    alone = _need(measured, SUBMIT, ONE_WORKER[-1])
    wal = max(_of_run(measured, "WAL bytes", point) for point in ONE_WORKER)
    disk = max(measured.medians[point]["bytes on disk"] for point in ONE_WORKER)
    lines = (
        f"- in large batches: {batched}",
        f"- in small batches, submitted one by one: {alone}",
        f"- WAL: {wal * PEAK_RATE / 1e6:.1f} MB/s, {wal * A_DAY / 1e9:,.0f} GB a day",
        f"- disk: {disk * A_DAY / 1e9:,.0f} GB a day before a vacuum",
        f"- connections: {_connections(measured)}",
    )
    return "\n".join(lines)


def _need(measured: Measured, submit: str, point: str) -> str:
    medians = measured.medians
    redis, postgresql, commits = (
        medians[submit][name] + medians[point][name]
        for name in ("CPU µs, Redis", "CPU µs, PostgreSQL", "commits of PostgreSQL")
    )
    return (
        f"{redis * PEAK_RATE / 1e6:.2f} cores of Redis, of which one does {1e6 / redis:,.0f}"
        f" runs/s; {postgresql * PEAK_RATE / 1e6:.2f} cores and {commits * PEAK_RATE:,.0f}"
        " commits/s of PostgreSQL"
    )


def _connections(measured: Measured) -> str:
    few, many = (measured.medians[point_name(workers, TASK_MS[-1])] for workers in (1, 4))
    postgres, redis = (
        round((many[name] - few[name]) / 3, 1)
        for name in ("connections of PostgreSQL", "connections of Redis")
    )
    return (
        f"{postgres:g} to PostgreSQL and {redis:g} to Redis for each further worker of {SLOTS}"
        " slots whose tasks use neither"
    )


def _of_run(measured: Measured, name: str, point: str) -> float:
    submit = SUBMIT_MANY if point == ONE_WORKER[0] else SUBMIT
    return measured.medians[submit][name] + measured.medians[point][name]


def run_steps(measured: Measured) -> str:
    """Return what busy slots need with tasks of a second, admitted one by one."""
    heads = ["step", "workers × slots", "runs/s", "a day", "cores of workers"]
    heads += ["of PostgreSQL", "of Redis"]
    rows = []
    for name, workers, slots in STEPS:
        rate = workers * slots
        of_workers = _cores(measured, rate, "worker, main process", "worker, children")
        rows.append(
            [
                name,
                f"{workers} × {slots}",
                f"{rate:,}",
                f"{rate * DAY_SECONDS / 1e6:,.0f} million",
                f"{of_workers:.1f}",
                f"{_cores(measured, rate, 'PostgreSQL'):.2f}",
                f"{_cores(measured, rate, 'Redis'):.2f}",
            ]
        )
    return _table(heads, rows)


def _cores(measured: Measured, rate: float, *kinds: str) -> float:
    used = (measured.medians[point] for point in (SUBMIT_MANY, ONE_WORKER[-1]))
    return rate * sum(of.get(f"CPU µs, {kind}", 0.0) for of in used for kind in kinds) / 1e6


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
