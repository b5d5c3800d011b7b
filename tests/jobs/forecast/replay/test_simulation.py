"""A replay: waits by shares, caps, rates, windows, locks and retries. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jobs.forecast.replay.changes import read_changes
from jobs.forecast.replay.load import SECOND, Call, Hours, Load, OutOfTime, Overhead, OwnerSetting
from jobs.forecast.replay.objective import Aim, Needed, slots_needed
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


def test_the_cost_of_a_start_is_a_part_of_the_wait() -> None:
    """It takes the slot before the run."""
    given = replace(load([call(), call()]), overhead=Overhead(start=SECOND // 10))
    assert waits(given)["acme"] == pytest.approx([0.1, 1.2])


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


def test_a_cap_keeps_an_owner_to_some_slots() -> None:
    """With a cap of 1, four slots help no more than one."""
    calls = [call() for _ in range(4)]
    assert sorted(waits(load(calls, slots=4, acme=OwnerSetting(cap=1)))["acme"]) == [0, 1, 2, 3]


def test_a_rate_spreads_starts() -> None:
    """Two starts a second, of which a second's may come at once."""
    calls = [call(run=0.01) for _ in range(6)]
    found = waits(load(calls, slots=6, acme=OwnerSetting(rate=2)))["acme"]
    assert found == pytest.approx([0, 0, 0.5, 1, 1.5, 2], abs=0.05)


def test_higher_priority_overtakes() -> None:
    """Also those of its submission that are in the queue already."""
    calls = [call(run=1) for _ in range(5)] + [call(at=0.5, priority=9)]
    assert waits(load(calls))["acme"].count(0.5) == 1


def test_a_lock_lets_one_run_at_a_time() -> None:
    """Runs with a lock wait for one another in many slots; those without do not."""
    calls = [call(lock="rack") for _ in range(3)] + [call()]
    assert sorted(waits(load(calls, slots=9))["acme"]) == [0, 0, 1, 2]


def test_runs_behind_a_lock_keep_no_others_back() -> None:
    """Also those that were ready when the lock was taken."""
    calls = [call(lock="rack") for _ in range(3)] + [call() for _ in range(5)]
    assert waits(load(calls, slots=9))["acme"].count(0) == 6


def behind_a_lock(*, slots: int) -> list[Call]:
    """Return runs of acme that come while others have all slots, for a second.

    One has a lock. Of another submission, two have the same one, and five behind them have none:
    the two are in the queue when the lock is taken, and are parked when their turn comes.
    """
    others = [call("globex") for _ in range(slots)]
    waiting = [call(at=0.1 * n, lock="rack", submission="b") for n in (1, 2)]
    waiting += [call(at=0.3 + 0.01 * n, submission="b") for n in range(5)]
    return [*others, *waiting, call(at=0.5, lock="rack", submission="a", run=10)]


def test_the_lock_of_another_submission_keeps_no_others_back() -> None:
    """They start with the run that takes the lock."""
    found = waits(load(behind_a_lock(slots=9), slots=9))["acme"]
    assert sum(wait < 1 for wait in found) == 6


@pytest.mark.parametrize("owner", ["acme", "globex"])
def test_a_run_beside_parked_ones_keeps_no_others_back(owner: str) -> None:
    """One of a third submission, or of another owner, is taken when they are parked."""
    beside = call(owner, at=0.6, submission="c")
    found = waits(load([*behind_a_lock(slots=9), beside], slots=9))
    assert sum(wait < 1 for wait in found["acme"]) == 6 + (owner == "acme")


def test_a_backlog_of_another_owner_keeps_none_back_behind_a_lock() -> None:
    """The queue has work for every slot, and it is still their turn."""
    backlog = [call("globex", at=0.01, run=0.5) for _ in range(100)]
    found = waits(load([*behind_a_lock(slots=3), *backlog], slots=3))["acme"]
    assert sum(wait < 9 for wait in found) == 6


def test_a_backlog_behind_a_lock_keeps_nothing_back_for_ever() -> None:
    """All of more runs than may wait in the queue start, one after the other."""
    calls = [call(lock="rack", run=0.01) for _ in range(200)]
    assert len(waits(load(calls, slots=4))["acme"]) == 200


def test_a_retry_follows_its_attempt() -> None:
    """As long after its end as it was; the wait before it is the retry's own."""
    first = call(run=1, then=call(at=2, run=1))
    assert waits(load([first, call(at=3, run=5)]))["acme"] == [0, 0, 5]


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


def test_a_window_that_is_too_short_is_none() -> None:
    """A run that needs more than any window never starts."""
    found = replayed(load([call(hours=hours(hour=6, long=1, needed=7200))]))
    assert of(found).never == 1


def test_a_run_expires_at_its_deadline() -> None:
    """It takes no slot then."""
    found = replayed(load([call(run=5), call(start_by=2 * SECOND), call(at=3)]))
    assert (of(found).expired, of(found).started) == (1, 2)


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


def test_changes_are_read_from_texts() -> None:
    """Weights, caps and windows, by the names of owners and calendars."""
    found = read_changes(
        slots=8, weights=["acme=2"], caps=["acme=0"], windows=["nights=mon-fri 22:00-06:00"]
    )
    assert (found.slots, found.weights, found.caps) == (8, {"acme": 2}, {"acme": 0})
    [window] = found.windows["nights"]
    assert (window.days, window.length) == (("MO", "TU", "WE", "TH", "FR"), timedelta(hours=8))
    assert read_changes(windows=["nights=always"]).windows == {"nights": []}
