"""lone: what fairness costs an owner who is alone."""

from __future__ import annotations

from tests.benchmarks.members.drain import OWNERS, drained
from tests.benchmarks.rows import Row, compared
from tests.benchmarks.world import World


def measure(world: World) -> list[Row]:
    """Compare the drain of one owner with that of 100."""
    count = world.pick(8_000, 2_000)
    rates: dict[int, list[float]] = {1: [], OWNERS: []}
    for _ in world.turns():
        for owners, found in rates.items():
            found.append(drained(world, world.fair, owners=owners, count=count, slots=2))
    return [
        compared(
            rates[1],
            rates[OWNERS],
            what="one owner",
            unit="tasks/s",
            against=f"{OWNERS} owners",
            at_least=0.95,
        )
    ]
