"""The demo's forecasts, a few seconds after a submit: told, and what it took, are shown later."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from jobs.forecast.estimate import Forecast

AFTER_SECONDS = (2.0, 5.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """A forecast that was made `after` a submit; all are seconds from that submit.

    All was to end between `earliest` and `latest`; None: run times and slots were not measured.
    """

    after: float
    told: float
    earliest: float | None
    latest: float | None

    def in_words(self) -> str:
        if self.earliest is None or self.latest is None:
            return f"{self.told:.1f} s, no span known, told at {self.after:.1f} s"
        span = f"{self.earliest:.1f} to {self.latest:.1f} s"
        return f"{self.told:.1f} s ({span} if the load stays), told at {self.after:.1f} s"


class Forecasts:
    """The forecasts of submissions, one at each of AFTER_SECONDS; `ask` makes them."""

    def __init__(self, ask: Callable[[], Sequence[Forecast | None]]) -> None:
        self._ask = ask
        self.made: list[Foreseen] = []
        self._left = list(AFTER_SECONDS)

    def look(self, seconds: float, *, since: datetime) -> None:
        """Make the next forecast if its time has come, `seconds` after the submit at `since`."""
        if not self._left or seconds < self._left[0]:
            return
        self._left.pop(0)
        found = [one for one in self._ask() if one is not None and one.ends_at is not None]
        if found:
            self.made.append(_foreseen(found, after=seconds, since=since))


def _foreseen(found: Sequence[Forecast], *, after: float, since: datetime) -> Foreseen:
    """Return when the last of some forecasts ends."""

    def last(name: str) -> float | None:
        ends = [getattr(one, name) for one in found]
        if None in ends:
            return None
        return round((max(ends) - since).total_seconds(), 2)

    return Foreseen(
        after=round(after, 2),
        told=last("ends_at") or 0.0,
        earliest=last("earliest_at"),
        latest=last("latest_at"),
    )
