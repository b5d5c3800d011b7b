"""A replay: waits by shares, windows, locks and waves, and what a start costs. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jobs.forecast.replay.load import SECOND, Call, Hours, Load, OutOfTime, Overhead, OwnerSetting
from jobs.forecast.replay.objective import Aim, Needed, slots_needed
from jobs.forecast.replay.overhead import Seen, overhead_of
from jobs.forecast.replay.results import Outcome, OwnerOutcome
from jobs.forecast.replay.simulation import Replay
from jobs.windows import CalendarHours, Effect, Entry

START = datetime(2026, 3, 2, tzinfo=UTC)


def call(owner: str = "acme", *, at: float = 0, run: float = 1, **facts: object) -> Call:
    """Return a call; times in seconds."""
    return Call(owner, "t", round(at * SECOND), round(run * SECOND), **facts)  # type: ignore[arg-type]


def load(calls: Sequence[Call], *, slots: int = 1, **owners: OwnerSetting) -> Load:
    """Return a load without the cost of starts."""
    names = {one.owner for one in calls}
    settings = {name: owners.get(name, OwnerSetting()) for name in names}
    day = timedelta(days=1)
    return Load(since=START, until=START + day, calls=calls, owners=settings, slots=slots)


def replayed(given: Load) -> Outcome:
    return Replay(given).run()


def waits(given: Load) -> dict[str, list[float]]:
    return {name: list(found) for name, found in replayed(given).waits.items()}


def of(outcome: Outcome, owner: str = "acme") -> OwnerOutcome:
    [found] = [one for one in outcome.owners() if one.owner == owner]
    return found


def test_runs_wait_for_a_slot_in_their_order() -> None:
    """The second of three runs in one slot waits for a run, the third for two."""
    assert waits(load([call(), call(), call()])) == {"acme": [0, 1, 2]}


def test_slots_are_shared_by_weight() -> None:
    """Of two owners with equal work, the one with three times the weight waits less."""
    calls = [call(owner, run=0.1) for _ in range(40) for owner in ("acme", "globex")]
    found = replayed(load(calls, acme=OwnerSetting(weight=3)))
    acme, globex = of(found, "acme"), of(found, "globex")
    assert acme.p95 is not None and globex.p95 is not None
    # After 40 of its own and 13 of the other's; the other ends last.
    assert 4.7 < acme.p95 + 0.2 < 5.7
    assert globex.p95 > 7.4
    assert found.jain is not None and found.jain > 0.95


def test_a_lock_lets_one_run_at_a_time() -> None:
    """Runs with a lock wait for one another in many slots; those without do not."""
    calls = [call(lock="rack") for _ in range(3)] + [call()]
    assert sorted(waits(load(calls, slots=9))["acme"]) == [0, 0, 1, 2]


def hours(*, hour: int, long: float, needed: float = 0) -> Hours:
    """Return a window each day, of some hours."""
    entry = Entry(
        Effect.WINDOW,
        datetime(2026, 1, 1, hour),
        timedelta(hours=long),
        "UTC",
        "FREQ=DAILY",
    )
    return Hours((CalendarHours((entry,)),), timedelta(seconds=needed))


def test_a_run_waits_for_its_window_and_that_is_no_wait() -> None:
    """The wait counts from the opening."""
    given = load([call(hours=hours(hour=6, long=1))])
    assert waits(given) == {"acme": [0]}
    assert replayed(given).ended_at == (6 * 3600 + 1) * SECOND


def test_a_run_that_misses_its_window_starts_in_the_next() -> None:
    """It is counted once, and its wait is that in the next window."""
    calls = [call(hours=hours(hour=6, long=1), run=3700), call(hours=hours(hour=6, long=1))]
    found = replayed(load(calls))
    assert of(found).missed == 1
    assert of(found).longest == 0
    assert found.ended_at > 30 * 3600 * SECOND


def test_a_sample_waits_as_long_as_the_whole() -> None:
    """A call that stands for ten takes ten times as long in a slot, and counts as ten."""
    whole = [call("ab"[n % 2], at=n * 0.01, run=0.05) for n in range(2000)]
    some = [one for number, one in enumerate(whole) if number // 2 % 10 == 0]
    part = replace(load(some, slots=2), each=10)
    for owner in "ab":
        real, said = of(replayed(load(whole, slots=2)), owner), of(replayed(part), owner)
        assert said.p95 == pytest.approx(real.p95, rel=0.05)
        assert said.started == real.started


def test_the_fewest_slots_that_meet_an_objective_are_found() -> None:
    """One slot less does not meet it."""
    given = load([call(at=n * 0.1, run=1) for n in range(200)])
    aims = {"acme": Aim(0.5)}
    needed = slots_needed(given, aims)
    assert needed.slots == 10
    late = sum(wait > 0.5 for wait in waits(replace(given, slots=9))["acme"])
    assert late > 10


def test_a_cap_that_no_slot_helps_is_said() -> None:
    """With the owner's name."""
    given = load([call() for _ in range(50)], acme=OwnerSetting(cap=1))
    assert slots_needed(given, {"acme": Aim(5)}) == Needed(None, ("acme",))


def test_a_replay_ends_at_its_deadline() -> None:
    """Its work is bounded by time."""
    given = load([call(run=0.001) for _ in range(2000)])
    with pytest.raises(OutOfTime):
        Replay(given, deadline=0.001).run()


def in_waves(*sizes: int, gap: float = 0, run: float = 10, **facts: object) -> Load:
    """Return a submission in waves of so many runs, all submitted at once."""
    calls = [
        call(run=run, submission="7", wave=wave, **facts)
        for wave, size in enumerate(sizes, 1)
        for _ in range(size)
    ]
    gaps = {("7", wave): round(gap * SECOND) for wave in range(2, len(sizes) + 1)}
    return replace(load(calls, slots=4), gaps=gaps)


@pytest.mark.parametrize(("gap", "end"), [(0, 10 + 10 + 20), (60, 10 + 60 + 10 + 60 + 20)])
def test_a_wave_begins_when_those_before_it_have_ended(gap: float, end: float) -> None:
    """And after the time between waves; runs of a held wave do not wait for a slot."""
    found = replayed(in_waves(1, 4, 8, gap=gap))
    assert found.ended_at == end * SECOND
    assert sorted(found.waits["acme"]) == [0] * 9 + [10] * 4


def test_a_wave_ends_with_its_last_attempt() -> None:
    """A run that expires has ended, too; one that never starts has not."""
    given = in_waves(1, 1)
    given.calls[0].then = call(at=5, run=10, submission="7", wave=1)
    assert replayed(given).ended_at == 35 * SECOND
    given = in_waves(1, 1)
    given.calls[0].start_by = 0
    assert replayed(given).ended_at == 10 * SECOND
    given = in_waves(1, 1)
    given.calls[0].hours = hours(hour=1, long=0.5, needed=3_600)
    assert replayed(given).ended_at == 0


def test_times_of_a_held_wave_count_from_its_release() -> None:
    """Its deadline, and when its runs arrive; another wave that is not held keeps its own."""
    given = in_waves(1, 5, run=10)
    for one in given.calls[1:]:
        one.at, one.start_by = SECOND, 5 * SECOND
    found = of(replayed(given))
    assert (found.started, found.expired) == (5, 1)
    assert replayed(replace(given, gaps={})).ended_at == 11 * SECOND
    assert replayed(given).ended_at == 21 * SECOND


FREE = {"acme": OwnerSetting()}


def test_idle_slots_beside_waiting_runs_are_the_cost_of_a_start() -> None:
    """Two runs one after the other in one slot, each after 100 us; both were queued at once."""
    seen = [Seen("acme", 0, 100, 1100, 1150), Seen("acme", 0, 1200, 2200, 2250)]
    assert overhead_of(seen, owners=FREE, slots=1) == Overhead(start=100, end=50)
