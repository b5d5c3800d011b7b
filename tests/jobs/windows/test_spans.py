"""jobs/windows/spans.py and cache.py: union, intersection and cuts, and what is kept of them."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jobs.windows.cache import SpanCache
from jobs.windows.entries import Span
from jobs.windows.spans import intersection, union, without

ZERO = datetime(2026, 6, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOURS = range(-1, 42)


def span(first: int, last: int) -> Span:
    return Span(ZERO + first * HOUR, ZERO + last * HOUR)


some = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 10)).map(lambda pair: span(pair[0], sum(pair))),
    max_size=8,
)


def covered(spans: list[Span]) -> set[int]:
    """Return the hours that lie in any of them."""
    return {n for n in HOURS if any(s.start <= ZERO + n * HOUR < s.end for s in spans)}


def is_tidy(spans: list[Span]) -> bool:
    """Tell whether spans are in order, not empty, and neither overlap nor touch."""
    edges = [moment for one in spans for moment in (one.start, one.end)]
    return all(early < late for early, late in pairwise(edges))


@given(some, some)
def test_spans_are_sets_of_moments(ours: list[Span], theirs: list[Span]) -> None:
    """What is in any, in both, and in the first alone: in order, and no span touches another."""
    mine, yours = union(ours), union(theirs)
    for found, hours in (
        (union([*ours, *theirs]), covered(ours) | covered(theirs)),
        (intersection(mine, yours), covered(ours) & covered(theirs)),
        (without(mine, yours), covered(ours) - covered(theirs)),
    ):
        assert covered(found) == hours and is_tidy(found) and union(found) == found
    assert union([*theirs, *ours]) == union([*ours, *theirs])
    assert intersection(yours, mine) == intersection(mine, yours)
    assert union([*without(mine, yours), *intersection(mine, yours)]) == mine


# --- the cache ----------------------------------------------------------------------------


def spans(count: int) -> tuple[Span, ...]:
    return tuple(span(n, n + 1) for n in range(count))


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
