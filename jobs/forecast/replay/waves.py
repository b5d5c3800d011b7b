"""Calls of waves: those of a later one are held until all before it have ended. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise

from jobs.forecast.replay.load import Call

Wave = tuple[str, int]
"""A submission, and the number of its wave."""


class Waves:
    """The calls that are held, by their numbers.

    The first wave of a submission that has calls is not held. Those after it are, if `gaps` has the
    time from the end of the waves before to their release.
    """

    def __init__(self, calls: Sequence[Call], gaps: Mapping[Wave, int]) -> None:
        self.held: set[int] = set()
        self._gaps = gaps
        self._open: Counter[str] = Counter()
        """Calls of released waves, whose runs have not ended, by submission."""
        self._later: dict[str, list[tuple[int, list[int]]]] = {}
        """The held waves, the last one first, with their calls."""
        cut = {submission for submission, _wave in gaps}
        found: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for number, call in enumerate(calls):
            if call.submission in cut:
                found[call.submission][call.wave].append(number)
        for submission, waves in found.items():
            order = sorted(waves)
            later = [wave for _before, wave in pairwise(order) if (submission, wave) in gaps]
            self._later[submission] = [(wave, waves[wave]) for wave in reversed(later)]
            self.held.update(number for wave in later for number in waves[wave])
            self._open[submission] = sum(len(waves[wave]) for wave in order if wave not in later)

    def end(self, call: Call) -> tuple[int, Sequence[int]]:
        """Note that a run has ended; return the calls that it releases, and how long after."""
        if not (later := self._later.get(call.submission)):
            return 0, ()
        self._open[call.submission] -= 1
        if self._open[call.submission]:
            return 0, ()
        wave, numbers = later.pop()
        self._open[call.submission] = len(numbers)
        return self._gaps[call.submission, wave], numbers
