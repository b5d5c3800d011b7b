"""jobs/forecast/estimate.py: what it tells is what a plain simulation sees, second by second."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.forecast.course import OWN, Capacity, Group, Retries, Work
from jobs.forecast.estimate import Done, Forecast, forecast
from jobs.forecast.replay.load import OwnerSetting
from jobs.windows import CalendarHours, Effect, Entry, Span
from tests.judge.forecast_oracle import Other, Some, starts_of

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
UNTIL = 800


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def hours(*spans: tuple[int, int], cut_off: int = 0, is_approved: bool = True) -> CalendarHours:
    """Return a calendar that is open from and to these seconds."""
    entries = [
        Entry(
            Effect.WINDOW,
            starts=after(start).replace(tzinfo=None),
            duration=timedelta(seconds=end - start),
            zone="UTC",
            approved=None if is_approved else (),
        )
        for start, end in spans
    ]
    return CalendarHours(tuple(entries), cut_off=timedelta(seconds=cut_off))


def told(
    groups: list[Group],
    *works: Work,
    slots: int = 4,
    others: dict[str, OwnerSetting] | None = None,
    **own: float,
) -> Forecast:
    setting = OwnerSetting(**own)  # type: ignore[arg-type]
    capacity = Capacity(slots=slots, own=setting, others=others or {}, works=works)
    return forecast(groups, capacity, now=NOW)


@st.composite
def openings(draw: st.DrawFn) -> tuple[tuple[int, int], ...]:
    """Some openings that do not touch, from the first second on."""
    lengths = draw(st.lists(st.integers(1, 60), min_size=2, max_size=8))
    at = list(accumulate(lengths))
    return tuple(zip(at[::2], at[1::2], strict=False))


@st.composite
def kinds(draw: st.DrawFn) -> tuple[Group, Some]:
    """Runs alike, as we and as the oracle take them."""
    spans, cut_off = draw(openings()), draw(st.sampled_from((0, 0, 3)))
    count, seconds = draw(st.integers(0, 25)), draw(st.integers(1, 20))
    needed, priority = draw(st.sampled_from((0, 5, seconds))), draw(st.sampled_from((5, 5, 9)))
    group = Group(
        count=count,
        seconds=seconds,
        calendars=(hours(*spans, cut_off=cut_off),),
        needed=timedelta(seconds=needed),
        priority=priority,
    )
    lasts = [(start, end - cut_off - needed) for start, end in spans]
    fit = [
        (start, last)
        for start, last in lasts
        if last >= start and last - start + needed + cut_off > 0
    ]
    return group, Some(count, seconds, fit, priority)


@given(st.lists(kinds(), max_size=4), st.integers(1, 6), st.none() | st.integers(1, 4))
def test_it_tells_what_is_seen_second_by_second(
    made: list[tuple[Group, Some]], slots: int, cap: int | None
) -> None:
    """How many start in each opening, who is left over, and when the last one ends."""
    groups, some = [group for group, _ in made], [kind for _, kind in made]
    seen = starts_of(some, slots=slots, until=UNTIL, cap=cap)
    found = told(groups, slots=slots, cap=cap or 0)
    assert sum(done.count for done in found.done) == len(seen)
    assert found.never == sum(kind.count for kind in some) - len(seen)
    last = max((second + some[index].seconds for second, index in seen), default=None)
    assert found.ends_at == (None if last is None else after(last))
    assert found.starts_at == (after(seen[0][0]) if seen else None)
    if not found.never:
        assert found.finishes_at == (found.ends_at or NOW)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 200)), min_size=1, max_size=3),
    st.integers(1, 8),
    st.integers(1, 40),
    # Of short ones the oracle, which looks each second, would see the fractions too late.
    st.integers(8, 30),
)
def test_beside_other_owners_it_is_near_what_is_seen(
    others: list[tuple[int, int]], slots: int, count: int, seconds: int
) -> None:
    """Within a run time and a tenth: what has a fraction of a slot rests in another rhythm."""
    seen = starts_of(
        [Some(count, seconds, [(0, 2_000)])],
        slots=slots,
        until=2_000,
        weight=3,
        others=[Other(*other) for other in others],
    )
    rivals = {f"other {place}": OwnerSetting(weight) for place, (weight, _) in enumerate(others)}
    works = [
        Work(count=many, seconds=1, owner=name)
        for name, (_, many) in zip(rivals, others, strict=True)
    ]
    found = told(
        [Group(count=count, seconds=seconds)], *works, slots=slots, weight=3, others=rivals
    )
    assert len(seen) == count and found.finishes_at is not None
    last = seen[-1][0] + seconds
    assert abs((found.finishes_at - NOW).total_seconds() - last) <= seconds + 3 + last / 10


@given(st.integers(1, 60), st.integers(1, 20), openings(), st.integers(1, 5), st.integers(1, 9))
@example(count=5, seconds=1, spans=((1, 2),), slots=1, weight=9)
def test_nothing_starts_outside_and_never_more_than_there_are_slots(
    count: int, seconds: int, spans: tuple[tuple[int, int], ...], slots: int, weight: int
) -> None:
    """In an opening no more start than its slots have room for, beside others or not."""
    group = Group(count=count, seconds=seconds, calendars=(hours(*spans),))
    rival = Work(count=100, seconds=1, owner="other")
    known = {Span(after(start), after(end)): end - start for start, end in spans}
    for found in (
        told([group], slots=slots),
        told([group], rival, slots=slots, others={"other": OwnerSetting(weight)}),
    ):
        assert sum(done.count for done in found.done) + found.never == count
        for done in found.done:
            assert done.opening is not None
            assert done.count <= slots * (known[done.opening] // seconds + 1)


def test_what_does_not_fit_is_left_over_and_said() -> None:
    """Four slots, ten seconds, five seconds a run: eight and four at the last moment."""
    group = Group(count=30, seconds=5, calendars=(hours((10, 20), (100, 200)),))
    found = told([group])
    assert [done.count for done in found.done] == [12, 18]
    assert (found.left_over, found.next_opening) == (18, after(100))
    assert found.finishes_at == after(100 + 5 * 5)
    assert found.warnings == (
        "18 do not fit into their first opening; the next is 2026-06-01 12:01 UTC.",
        (
            "The windows are scarce: 150 worker seconds are needed, and the first openings have 40"
            " (4 slots, of which 100% are theirs)."
        ),
    )


def test_who_never_starts_is_counted_with_the_reason() -> None:
    """A window that is too short, and one that nobody has approved; the others end all the same."""
    short = Group(
        count=2,
        seconds=1,
        needed=timedelta(seconds=90),
        calendars=(hours((10, 20)),),
        names=("fw-1", "fw-2"),
    )
    asked = Group(count=3, seconds=1, calendars=(hours((10, 20), is_approved=False),), names=("r",))
    found = told([short, asked, Group(count=1, seconds=7)])
    assert (found.never, found.unapproved, found.without_calendar) == (5, 3, 1)
    assert (found.finishes_at, found.ends_at) == (None, after(7))
    assert found.names["never"] == ("fw-1", "fw-2", "r")
    assert found.names["unapproved"] == ("r",)
    assert found.warnings == (
        "Waiting for a window that is not approved: 3.",
        "Without an opening within a year that is long enough: 2.",
    )


def test_waves_are_played_one_after_the_other() -> None:
    """Each begins a minute after the one before has ended, whatever the number of calls."""
    sizes = (1, 30, 300, 2_669)
    groups = [
        Group(count=size, seconds=10, wave=number and number + 1)
        for number, size in enumerate(sizes)
    ]
    capacity = Capacity(slots=100, between={OWN: 60})
    found = forecast(groups, capacity, now=NOW)
    # One round, one, three, and 27.
    assert seconds(found) == pytest.approx(10 + 60 + 10 + 60 + 30 + 60 + 270, rel=0.05)
    assert found.count == 3_000 and found.done == (Done(None, 3_000),)
    blocked = replace(groups[1], calendars=(hours((0, 1)),), needed=timedelta(seconds=60))
    found = forecast([groups[0], blocked, groups[2]], capacity, now=NOW)
    assert (found.never, found.finishes_at) == (330, None)


def test_later_waves_of_others_take_no_slot_before_their_turn() -> None:
    """They come behind the wave that runs, as our runs do."""
    group = Group(count=40, seconds=10)
    others = {"globex": OwnerSetting()}
    works = (
        Work(count=4, seconds=100, owner="globex", submission="9"),
        Work(count=300, seconds=10, owner="globex", submission="9", wave=2),
    )
    capacity = Capacity(slots=8, others=others, works=works, between={"9": 0.0})
    # Four of eight slots for 100 s.
    assert seconds(forecast([group], capacity, now=NOW)) == pytest.approx(100, abs=10)


def seconds(found: Forecast) -> float:
    assert found.finishes_at is not None
    return (found.finishes_at - NOW).total_seconds()


# --- attempts that fail at first ----------------------------------------------------------


def told_with_failures(
    groups: list[Group], part: float, *waits: float, slots: int = 10
) -> Forecast:
    """Foresee runs of which a part fails, up to as often as there are waits."""
    retries = Retries(part=part, waits=waits, seen=len(waits))
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
    found = told_with_failures([runs(10, (0, 5), (20, 40), (50, 55))], 0.2, *waits)
    assert found.ends_at == found.finishes_at == after(end)
    assert [done.count for done in found.done] == [10]


def test_failures_fall_where_most_runs_are() -> None:
    """One in a hundred fails: it is none of the two that start in the last opening."""
    groups = [runs(200, (0, 25), (100, 125)), runs(2, (50, 60), (900, 950))]
    assert told_with_failures(groups, 0.01, 20).finishes_at == after(101)
    # Where every second run fails, one of these does.
    assert told_with_failures(groups, 0.5, 20).finishes_at == after(901)


@pytest.mark.parametrize(("chance", "end"), [(0.5, 4), (0.95, 61)])
def test_a_first_wave_may_fail_although_few_runs_are_in_it(chance: float, end: float) -> None:
    """One in forty fails: one of eight is unlikely, but more likely than one time in twenty."""
    groups = [
        replace(runs(8, (0, 6), (30, 36), (60, 66)), wave=0),
        replace(runs(20, (0, 6), (30, 36), (60, 66)), wave=2),
    ]
    found = forecast(
        groups,
        Capacity(slots=10, between={OWN: 1}),
        now=NOW,
        retries=Retries(part=0.025, waits=[5], chance=chance),
    )
    assert found.finishes_at == after(end)


def test_the_last_attempt_that_fails_takes_as_long_as_failures_do() -> None:
    """A timeout of 5 s and a wait of 3 s before the run of a second; others' time is the mean."""
    retries = Retries(part=0.2, waits=[3], seconds=5)
    found = forecast([runs(100)], Capacity(slots=100), now=NOW, retries=retries)
    assert found.finishes_at == after(5 + 3 + 1)
    assert told_with_failures([runs(100)], 0.2, 3, slots=100).finishes_at == after(1 + 3 + 1)


def test_releases_and_openings_are_seen_with_a_lag() -> None:
    """Two seconds for the opening, and for the release of each wave."""
    groups = [replace(runs(4, (10, 100)), wave=wave) for wave in (0, 2, 3)]
    capacity = Capacity(slots=4, between={OWN: 0}, lag=2)
    found = forecast(groups, capacity, now=NOW)
    assert (found.starts_at, found.finishes_at) == (after(12), after(10 + 2 + 1 + 2 + 1 + 2 + 1))


def test_what_waits_to_be_tried_again_starts_no_earlier() -> None:
    """Then in its opening."""
    waiting = Group(count=2, seconds=1, calendars=(hours((0, 5), (20, 40)),), wait=after(7) - NOW)
    assert told_with_failures([waiting], 0.1).starts_at == after(20)
    bare = Group(count=2, seconds=1, wait=after(7) - NOW)
    assert told_with_failures([bare, runs(1)], 0.1).finishes_at == after(8)
