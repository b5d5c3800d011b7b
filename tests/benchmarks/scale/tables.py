"""The tables of docs/operate/scale.md, from the last full run of the benchmark. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
MEAN_RATE: Final = A_DAY / DAY_SECONDS
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
    ("beat", "CPU of beat, µs"),
)
COUNTS: Final = (
    ("WAL bytes", "WAL, bytes"),
    ("commits of PostgreSQL", "commits of PostgreSQL"),
    ("round trips to Redis", "round trips to Redis"),
    ("bytes to and from Redis", "bytes to and from Redis"),
    ("bytes on disk", "disk with indexes, before a vacuum, bytes"),
)


def conditions(measured: Measured) -> str:
    """Return a sentence on the machine and its day."""
    machine = measured.conditions["machine"]
    others = max(row.get("cores of others", 0.0) for row in measured.medians.values())
    kind = ", a quick trial and no full measurement" if measured.conditions["quick"] else ""
    rounds = measured.conditions["rounds"]
    return (
        f"Measured on {measured.conditions['date']}{kind}: {machine['cores']} shared cores"
        f" ({machine['processor']}), PostgreSQL {machine['postgresql server_version']}, Redis"
        f" {machine['redis server']}, Python {machine['python']}, "
        f"{rounds} round{'s' if rounds > 1 else ''}, the median counts. Other"
        f" programs used up to {others:.2f} cores meanwhile."
    )


def run_costs(measured: Measured) -> str:
    """Return what a submit and a run cost."""
    points = [point_name(1, ms) for ms in TASK_MS]
    columns = [SUBMIT_MANY, SUBMIT, *points, IDLE]
    heads = ["of one run", "`submit_many`", "`submit`"]
    heads += [f"task of {ms} ms" for ms in TASK_MS] + ["1 worker, idle: of a second"]
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
    """Return what 100 million runs a day need of the two servers, by mean and peak."""
    heads = ["100,000,000 runs a day", f"mean, {MEAN_RATE:,.0f} runs/s"]
    heads.append(f"busiest hour, {PEAK_RATE:,.0f} runs/s")
    table = _table(heads, list(_needs(measured)))
    return f"{table}\n\n{_connections(measured)}"


def _connections(measured: Measured) -> str:
    few, many = (measured.medians[point_name(workers, TASK_MS[-1])] for workers in (1, 4))
    postgres, redis = (
        round((many[name] - few[name]) / 3, 1)
        for name in ("connections of PostgreSQL", "connections of Redis")
    )
    return (
        f"Each further worker of {SLOTS} slots had {postgres:g} more connections to PostgreSQL and"
        f" {redis:g} more to Redis, with tasks that use neither."
    )


def _needs(measured: Measured) -> Iterator[list[str]]:
    batched, alone = ONE_WORKER[0], ONE_WORKER[-1]
    for server in ("Redis", "PostgreSQL"):
        for submit, point, what in (
            (SUBMIT_MANY, batched, "large batches"),
            (SUBMIT, alone, "small batches, single submits"),
        ):
            name = f"CPU µs, {server}"
            used = measured.medians[submit][name] + measured.medians[point][name]
            limit = f", one core does {1e6 / used:,.0f} runs/s" if server == "Redis" else ""
            yield _at_rates(f"cores of {server}, {what}{limit}", used / 1e6, digits=2)
    commits = [_of_run(measured, "commits of PostgreSQL", point) for point in (batched, alone)]
    yield _at_rates("commits a second, large batches", commits[0])
    yield _at_rates("commits a second, small batches, single submits", commits[1])
    wal = max(_of_run(measured, "WAL bytes", point) for point in ONE_WORKER)
    yield _at_rates("WAL, MB/s", wal / 1e6, digits=1)
    yield ["WAL, GB a day", f"{wal * A_DAY / 1e9:,.0f}", ""]
    disk = max(measured.medians[point]["bytes on disk"] for point in ONE_WORKER)
    yield ["disk, GB a day, before a vacuum", f"{disk * A_DAY / 1e9:,.0f}", ""]


def _of_run(measured: Measured, name: str, point: str) -> float:
    submit = SUBMIT_MANY if point == ONE_WORKER[0] else SUBMIT
    return measured.medians[submit][name] + measured.medians[point][name]


def _at_rates(what: str, of_a_run: float, *, digits: int = 0) -> list[str]:
    return [what, *(f"{of_a_run * rate:,.{digits}f}" for rate in (MEAN_RATE, PEAK_RATE))]


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
