"""The arithmetic of the benchmarks. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


def percentile(values: Iterable[float], percent: float) -> float:
    """Return the smallest value that at least `percent` of all do not exceed (nearest rank)."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("nothing has no percentile")
    return ordered[max(1, math.ceil(len(ordered) * percent / 100)) - 1]


def jain(values: Iterable[float]) -> float:
    """Return Jain's index: 1 when all are equal, 1/n when one has everything.

    R. Jain, D. Chiu, W. Hawe: A Quantitative Measure of Fairness, DEC-TR-301 (1984).
    """
    given = list(values)
    squares = sum(value * value for value in given)
    if squares == 0:
        raise ValueError("nothing was shared")
    return sum(given) ** 2 / (len(given) * squares)


def share_error(received: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the largest relative error of any owner's part of all that was received."""
    whole, weight = sum(received.values()), sum(weights.values())
    return max(
        abs(received.get(owner, 0.0) / whole / (weights[owner] / weight) - 1) for owner in weights
    )


def ideal_ends(
    work: Mapping[str, float], *, slots: int, weights: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Return when each owner's work (slot seconds) ends if the slots are shared like water.

    Processor sharing: at every moment the owners that still have work have the slots in
    proportion to their weights. Seconds from the moment in which all were submitted.
    """
    left = dict(work)
    weight = {owner: (weights or {}).get(owner, 1.0) for owner in work}
    ends: dict[str, float] = {}
    now = 0.0
    while left:
        speed = slots / sum(weight[owner] for owner in left)
        step = min(left[owner] / weight[owner] for owner in left) / speed
        now += step
        for owner in list(left):
            left[owner] -= step * speed * weight[owner]
            if left[owner] <= 1e-9 * work[owner]:
                del left[owner]
                ends[owner] = now
    return ends


@dataclass(frozen=True, slots=True)
class Ran:
    """One run as its task logged it: its owner and, in seconds, when its body began and ended."""

    owner: str
    began: float
    ended: float
    number: int = 0


def contended(runs: Sequence[Ran]) -> tuple[float, float]:
    """Return the span in which every owner still had work: to the first owner's last start.

    Each run that began before that end is known to us even if the workers were killed while
    others ran, as long as the runs of one owner take equally long.
    """
    last: dict[str, float] = {}
    for ran in runs:
        last[ran.owner] = max(last.get(ran.owner, ran.began), ran.began)
    return min(ran.began for ran in runs), min(last.values())


def received(runs: Iterable[Ran], span: tuple[float, float]) -> dict[str, float]:
    """Return the worker seconds that each owner had within a span."""
    got: dict[str, float] = {}
    for ran in runs:
        inside = max(0.0, min(ran.ended, span[1]) - max(ran.began, span[0]))
        got[ran.owner] = got.get(ran.owner, 0.0) + inside
    return got
