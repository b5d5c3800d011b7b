"""encrypted: what encryption at rest costs durable runs."""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings
from django.test import override_settings

from jobs.core.keyring import new_key
from tests.benchmarks.members.drain import OWNERS
from tests.benchmarks.members.durable import drained
from tests.benchmarks.rows import Row, compared
from tests.benchmarks.world import World

SLOTS = 2


def measure(world: World) -> list[Row]:
    """Compare durable runs with and without a key ring, in turn."""
    world.commits_are_durable()
    ring, count = new_key(1), world.pick(6_000, 2_000)
    keys = {"FAIRSHIFT_ENCRYPTION_KEYS": ring}
    with_ring = replace(world, environment={**world.environment, **keys})
    rates: dict[bool, list[float]] = {True: [], False: []}
    for _ in world.turns():
        for is_on, found in rates.items():
            values = {**settings.FAIRSHIFT, "ENCRYPTION_KEYS": ring if is_on else ""}
            with override_settings(FAIRSHIFT=values):
                one = with_ring if is_on else world
                found.append(drained(one, owners=OWNERS, count=count, slots=SLOTS)[0])
    return [
        compared(
            rates[True],
            rates[False],
            what=f"{SLOTS} slots, encrypted at rest",
            unit="tasks/s",
            against="not encrypted",
            at_least=0.9,
        )
    ]
