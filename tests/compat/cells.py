"""The combinations of versions that `make compat` tests."""

from collections.abc import Sequence
from itertools import product
from typing import Final, NamedTuple

from fleet.versions import TESTED

PYTHONS: Final = ("3.11", "3.12", "3.13")
DJANGOS: Final = ("5.2", "6.0")
OLDEST_PYTHON: Final = {"5.2": "3.11", "6.0": "3.12"}
"""By Django: the oldest Python that it runs on."""


class Cell(NamedTuple):
    """One combination; all else is as in requirements.lock."""

    celery: str
    redis: str
    python: str
    django: str

    def __str__(self) -> str:
        return "-".join(f"{name}{value}" for name, value in self._asdict().items())


def every(pythons: Sequence[str]) -> list[Cell]:
    """Return all combinations that there can be with these Pythons."""
    return [
        Cell(*values)
        for values in product(TESTED["celery"], TESTED["redis"], pythons, DJANGOS)
        if values[2] >= OLDEST_PYTHON[values[3]]
    ]


def covering(pythons: Sequence[str]) -> list[Cell]:
    """Return few of them: the oldest and the newest of all, and each value with each Celery.

    Other Celerys than the first and the last meet their redis-py with another Python.
    """
    chosen: list[Cell] = []
    for turn, celery in enumerate(TESTED["celery"]):
        shift = 0 if celery in (TESTED["celery"][0], TESTED["celery"][-1]) else turn
        for number, redis in enumerate(TESTED["redis"]):
            python = pythons[(number + shift) % len(pythons)]
            django = [each for each in DJANGOS if python >= OLDEST_PYTHON[each]][-1]
            chosen.append(Cell(celery, redis, python, django))
    return chosen
