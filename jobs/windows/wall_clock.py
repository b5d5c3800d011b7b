"""Wall times of a zone as moments, also when the clock skips or repeats them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo


def moment_at(wall: datetime, zone: str, *, last: bool = False) -> datetime:
    """Return the moment, in UTC, at which the clock of a zone shows a time (naive).

    For a repeated time it is the first moment, or the `last` one. For a skipped time it is the
    first moment at which the clock shows a later time.
    """
    place = ZoneInfo(zone)
    found = wall.replace(tzinfo=place, fold=int(last)).astimezone(UTC)
    return found if shown_at(found, zone) == wall else _after_gap(wall, place)


def shown_at(moment: datetime, zone: str) -> datetime:
    """Return what the clock of a zone shows at a moment (naive)."""
    return moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)


def is_skipped(wall: datetime, zone: str) -> bool:
    """Say whether the clock of a zone never shows this time."""
    return shown_at(moment_at(wall, zone), zone) != wall


def is_repeated(wall: datetime, zone: str) -> bool:
    """Say whether the clock of a zone shows this time twice."""
    return moment_at(wall, zone) != moment_at(wall, zone, last=True)


def _after_gap(wall: datetime, place: ZoneInfo) -> datetime:
    # By PEP 495 a skipped time with fold=1 lies before the gap, and with fold=0 after it. Clocks
    # are changed at whole seconds.
    early = int(wall.replace(tzinfo=place, fold=1).timestamp() // 1)
    late = -int(-wall.replace(tzinfo=place, fold=0).timestamp() // 1)
    new = _offset(late, place)
    while late - early > 1:
        middle = (early + late) // 2
        if _offset(middle, place) == new:
            late = middle
        else:
            early = middle
    return datetime.fromtimestamp(late, UTC)


def _offset(seconds: int, place: ZoneInfo) -> object:
    return datetime.fromtimestamp(seconds, place).utcoffset()
