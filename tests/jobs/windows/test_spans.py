"""jobs/windows/spans.py: union, intersection and cuts, for all spans that there are."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

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
def test_union_has_what_is_in_any(ours: list[Span], theirs: list[Span]) -> None:
    """The order in which spans come says nothing; what touches becomes one."""
    found = union([*ours, *theirs])
    assert covered(found) == covered(ours) | covered(theirs) and is_tidy(found)
    assert union([*theirs, *ours]) == found == union(found)


@given(some, some)
def test_intersection_has_what_is_in_both(ours: list[Span], theirs: list[Span]) -> None:
    """Neither comes first."""
    mine, yours = union(ours), union(theirs)
    found = intersection(mine, yours)
    assert covered(found) == covered(ours) & covered(theirs) and is_tidy(found)
    assert intersection(yours, mine) == found


@given(some, some)
def test_without_has_what_is_left(ours: list[Span], theirs: list[Span]) -> None:
    """What is cut out is gone, and nothing else."""
    mine, cut = union(ours), union(theirs)
    found = without(mine, cut)
    assert covered(found) == covered(ours) - covered(theirs) and is_tidy(found)
    assert union([*found, *intersection(mine, cut)]) == mine
