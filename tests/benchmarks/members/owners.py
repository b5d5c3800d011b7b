"""owners: whether many owners slow the queue down."""

from statistics import median

from tests.benchmarks.members.drain import drained
from tests.benchmarks.rows import Row
from tests.benchmarks.world import World

FEW = 10


def measure(world: World) -> list[Row]:
    """Compare the drain of many owners with that of few; the counts between give the curve."""
    many = world.pick(10_000, 1_000)
    count = world.pick(10_000, 3_000)
    between = [] if world.is_quick else [100, 1_000]
    rates: dict[int, list[float]] = {owners: [] for owners in (FEW, *between, many)}
    for number in world.turns():
        for owners, found in rates.items():
            if number == 0 or owners not in between:
                found.append(drained(world, world.fair, owners=owners, count=count, slots=2))
    return [
        Row(
            what=f"{owners:,} owners",
            unit="tasks/s",
            figure=median(found),
            baseline=median(rates[FEW]) if owners != FEW else None,
            against=f"{FEW} owners" if owners != FEW else "",
            at_least=0.9 if owners == many else None,
            samples={f"{owners} owners": found},
        )
        for owners, found in rates.items()
    ]
