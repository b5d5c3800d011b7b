"""What a run costs: the difference of two readings, divided by the runs between them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

TICKS: Final = 0.1
"""CPU seconds by which a sum may fall: the kernel rounds the time of each process to 10 ms."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was used up to a moment: CPU seconds by kind of process, and other counts.

    `machine` are the CPU seconds of all that runs on it. `connections` are those of PostgreSQL and
    Redis, at that moment.
    """

    at: float
    machine: float
    cpu: Mapping[str, float]
    counts: Mapping[str, float]
    connections: tuple[int, int] = (0, 0)


def cost_of_a_run(before: Reading, after: Reading, *, runs: int) -> dict[str, float]:
    """Return what one of `runs` runs between two readings cost; CPU time is in µs.

    Also how many runs ended in a second, and the cores that this benchmark did not use itself.

    Raises ValueError when there were no runs, or when a count fell: a server was restarted.
    """
    if runs < 1:
        raise ValueError("no run ended between the readings")
    used = {kind: after.cpu[kind] - earlier for kind, earlier in before.cpu.items()}
    counted = {name: after.counts[name] - earlier for name, earlier in before.counts.items()}
    for name, value in {**counted, **{kind: more + TICKS for kind, more in used.items()}}.items():
        if value < 0:
            raise ValueError(f"{name} fell between the readings: a process was restarted")
    cost = {f"CPU µs, {kind}": max(0.0, more) * 1e6 / runs for kind, more in used.items()}
    cost |= {name: more / runs for name, more in counted.items()}
    seconds = after.at - before.at
    ours = sum(after.cpu.values()) - sum(before.cpu.values())
    others = (after.machine - before.machine - ours) / seconds
    return {"runs/s": runs / seconds, **cost, "cores of others": max(0.0, others)}


def without_idle(cost: Mapping[str, float], idle: Mapping[str, float]) -> dict[str, float]:
    """Return the cost of a run without what an idle installation uses in the same time.

    `idle` is for a second. Nothing becomes negative: heartbeats fall into one span and not into
    another.
    """
    rate = cost["runs/s"]
    return {
        name: max(0.0, value - idle[name] / rate) if _is_of_a_run(name) else value
        for name, value in cost.items()
    }


def _is_of_a_run(name: str) -> bool:
    return name not in {"runs/s", "cores of others", "bytes on disk"} and (
        not name.startswith("connections")
    )
