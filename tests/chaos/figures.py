"""How much a long proof does, and by which seed: both from the environment."""

import os
import secrets
from random import Random


def amount(name: str, default: int) -> int:
    """Return the number that the environment gives under this name."""
    return int(os.environ.get(name) or default)


def dice(**amounts: int) -> Random:
    """Return a source of chance by SEED; print it, and these amounts, so that all can be redone."""
    seed = amount("SEED", secrets.randbelow(10**6))
    said = " ".join(f"{name}={number}" for name, number in amounts.items())
    print(f"\nSEED={seed} {said}")
    return Random(seed)


def spread(seconds: list[float]) -> str:
    """Return the middle, the 95th of a hundred, and the longest of these spans."""
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    middle, late = ordered[len(ordered) // 2], ordered[len(ordered) * 95 // 100]
    return f"median {middle:.2f} s, p95 {late:.2f} s, longest {ordered[-1]:.2f} s"
