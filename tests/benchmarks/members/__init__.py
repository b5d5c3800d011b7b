"""The members: what can be measured, each a module with `measure`."""

from importlib import import_module
from typing import Final

from tests.benchmarks.rows import Row
from tests.benchmarks.world import World

MEMBERS: Final = (
    "drain",
    "owners",
    "lone",
    "backlog",
    "behind",
    "shares",
    "two_workers",
    "idle",
    "far",
    "cpu",
    "durable",
    "durable_owners",
    "cost",
    "submit",
    "crud",
    "api",
    "pages",
    "trigger",
    "waves",
)
"""In the order in which they run."""


def measure(member: str, world: World) -> list[Row]:
    """Measure one member; what it cannot import counts as its own error."""
    rows: list[Row] = import_module(f"{__name__}.{member}").measure(world)
    return rows
