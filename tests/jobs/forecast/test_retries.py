"""jobs/forecast/estimate.py: what fails at first needs an opening for its next attempt, too."""

import pytest

from jobs.forecast.course import Capacity, Group, Retries
from jobs.forecast.estimate import Forecast, forecast
from tests.jobs.forecast.test_estimate import NOW, after, hours


def told(groups: list[Group], part: float, *waits: float, slots: int = 10) -> Forecast:
    """Foresee runs of which a part fails, and is tried again after these waits."""
    retries = Retries(part=part, waits=waits)
    return forecast(groups, Capacity(slots=slots), now=NOW, retries=retries)


def runs(count: int, *spans: tuple[int, int]) -> Group:
    """Return runs of a second each."""
    return Group(count=count, seconds=1, calendars=(hours(*spans),) if spans else ())


@pytest.mark.parametrize(
    ("waits", "end"),
    [
        ((), 1),
        ((3,), 5),
        ((3.5,), 5.5),
        # The opening has closed: the next one begins at 20 and 40.
        ((4.5,), 21),
        ((2, 3), 21),
        ((9, 9), 31),
        ((9, 30), 52),
    ],
)
def test_an_attempt_after_the_close_starts_in_the_next_opening(
    waits: tuple[float, ...], end: float
) -> None:
    """However short the wait after the failure was; one that is in time ends in the same."""
    found = told([runs(10, (0, 5), (20, 40), (50, 55))], 0.2, *waits)
    assert found.ends_at == found.finishes_at == after(end)
    assert [done.count for done in found.done] == [10]


def test_failures_fall_where_most_runs_are() -> None:
    """One in a hundred fails: it is none of the two that start in the last opening."""
    groups = [runs(200, (0, 25), (100, 125)), runs(2, (50, 60), (900, 950))]
    assert told(groups, 0.01, 20).finishes_at == after(101)
    # Where every second run fails, one of these does.
    assert told(groups, 0.5, 20).finishes_at == after(901)


def test_what_waits_to_be_tried_again_starts_no_earlier() -> None:
    """Then in its opening."""
    waiting = Group(count=2, seconds=1, calendars=(hours((0, 5), (20, 40)),), wait=after(7) - NOW)
    assert told([waiting], 0.1).starts_at == after(20)
    bare = Group(count=2, seconds=1, wait=after(7) - NOW)
    assert told([bare, runs(1)], 0.1).finishes_at == after(8)
