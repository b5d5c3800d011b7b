"""jobs/windows/cache.py and entries.py: what is kept is bounded, and calendars are values."""

from datetime import UTC, datetime, timedelta

from jobs.windows import Span
from jobs.windows.cache import SpanCache

ZERO, HOUR = datetime(2026, 6, 1, tzinfo=UTC), timedelta(hours=1)


def spans(count: int) -> tuple[Span, ...]:
    return tuple(Span(ZERO + n * HOUR, ZERO + (n + 1) * HOUR) for n in range(count))


def test_what_was_not_asked_for_is_forgotten_first() -> None:
    """The limit is of spans, with one more for each key, and never exceeded afterwards."""
    kept = SpanCache(most=20)
    for key in ("a", "b", "c"):
        assert kept.get(key, lambda: spans(4)) == spans(4)
    kept.get("a", lambda: spans(0))
    kept.get("d", lambda: spans(6))
    assert kept.count <= 20
    assert kept.get("a", lambda: spans(1)) == spans(4)
    assert kept.get("b", lambda: spans(1)) == spans(1)


def test_nothing_is_too_large_to_be_found() -> None:
    """What does not fit is returned, and not kept."""
    kept = SpanCache(most=3)
    assert len(kept.get("large", lambda: spans(9))) == 9
    assert kept.count == 0 and kept.get("large", lambda: spans(1)) == spans(1)
