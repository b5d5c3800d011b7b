"""Whatever anybody does, in any order, to whichever run: what was promised of runs holds."""

import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, TypeVar

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from jobs.core.states import ENDED
from tests.jobs.journeys.clock import FakeClock
from tests.jobs.journeys.network import Network
from tests.jobs.journeys.story import Story
from tests.jobs.journeys.worker import WAYS, Worker
from tests.jobs.journeys.world import OWNERS, World

SEED = int(os.environ.get("SEED") or secrets.randbelow(10**6))
MOST_RUNS = 12

T = TypeVar("T")

places = st.integers(0, 11)
some_places = st.lists(places, min_size=1, max_size=4)
seldom = st.sampled_from((False, False, False, True))
waves = st.fixed_dictionaries(
    {
        "sizes": st.sampled_from(([1, "100%"], [2, "100%"], [1, 1, "100%"])),
        "stop_at": st.sampled_from((None, 0, 0, 1)),
        "between": st.sampled_from((None, None, timedelta(seconds=16), "approval")),
    }
)
submits = st.fixed_dictionaries(
    {
        "owner": st.sampled_from(OWNERS),
        "number": st.integers(1, 4),
        "waves": st.one_of(st.none(), waves),
        "lock": st.sampled_from(("", "", "door")),
        "countdown": st.sampled_from((None, None, None, 20)),
        "deadline_seconds": st.sampled_from((None, None, None, 25)),
        "max_attempts": st.integers(1, 3),
        "priority": st.sampled_from((5, 9)),
    }
)
limits = ("pause", "pause a while", "resume", None, 1, 1, 2)
houses = (("promote",), ("roll", "promote"), ("sweep",), ("rescue", "roll", "promote", "sweep"))
steps = ("pause", "resume", "resume", "release", "resize", "retry failed", "cancel")
losses = ("lost", "forged", "flushed", "row held")
troubles = ("beat", "die", "stop", "freeze", "freeze")

ACTS: Final[Mapping[str, tuple[int, Mapping[str, st.SearchStrategy[Any]]]]] = {
    "start_all": (4, {"who": places}),
    "finish_all": (3, {"who": places, "how": st.sampled_from(WAYS)}),
    "record": (3, {"who": places, "is_repeated": st.booleans()}),
    "finish": (4, {"who": places, "which": places, "how": st.sampled_from(WAYS)}),
    "start": (3, {"who": places, "which": places}),
    "admit": (4, {"who": places, "which": some_places, "keep": seldom, "is_unheard": seldom}),
    "advance": (4, {"seconds": st.sampled_from((1, 16, 31))}),
    "keep_house": (4, {"what": st.sampled_from(houses)}),
    "submit": (2, {"options": submits, "is_committed": seldom.map(lambda luck: not luck)}),
    "cancel": (2, {"which": places}),
    "retry": (2, {"which": places}),
    "limit": (2, {"owner": st.sampled_from(OWNERS), "how": st.sampled_from(limits)}),
    "steer": (3, {"which": places, "how": st.sampled_from(steps)}),
    "disturb": (2, {"how": st.sampled_from(losses), "which": some_places}),
    "disturb_worker": (4, {"who": places, "how": st.sampled_from(troubles)}),
    "oversleep": (2, {"who": places}),
}
"""What may be done, how often beside the others, and what is drawn for it.

One rule for all: hypothesis leaves whole rules out of a sequence, and without workers' daily
work nothing happens in it.
"""

acts = st.sampled_from([name for name, (often, _) in ACTS.items() for _ in range(often)]).flatmap(
    lambda name: st.tuples(st.just(name), st.fixed_dictionaries(dict(ACTS[name][1])))
)


def chosen(several: Sequence[T], place: int) -> T:
    return several[place % len(several)]


class Journeys(RuleBasedStateMachine):
    """Everybody's acts, each drawn with whom it meets; one that meets nobody does nothing."""

    def __init__(self, clock: FakeClock, network: Network) -> None:
        super().__init__()
        self.world = World(clock, network)

    def teardown(self) -> None:
        try:
            # Not after a step that failed: its own error is to be shown.
            if sys.exc_info()[0] is None:
                self.world.drain()
        finally:
            self.world.end()

    @invariant()
    def promises_hold(self) -> None:
        self.world.check()

    @initialize(first=submits, second=submits, most=st.sampled_from((None, 1, 2)))
    def begin(self, first: dict[str, Any], second: dict[str, Any], most: int | None) -> None:
        self.world.limit(first["owner"], most)
        self.world.submit(**first)
        self.world.submit(**second)

    @rule(act=acts)
    def step(self, act: tuple[str, dict[str, Any]]) -> None:
        name, drawn = act
        getattr(self, name)(**drawn)

    def those(self, fits: Callable[[Worker], Any]) -> list[Worker]:
        """Return the workers that are awake and fit."""
        return [each for each in self.world.workers if not each.is_frozen and fits(each)]

    def story(self, place: int) -> Story:
        return chosen(list(self.world.stories.values()), place)

    # --- callers and operators ----------------------------------------------------------

    def submit(self, options: dict[str, Any], *, is_committed: bool) -> None:
        if len(self.world.stories) < MOST_RUNS:
            self.world.submit(**options, is_committed=is_committed)

    def cancel(self, which: int) -> None:
        self.world.cancel(self.story(which))

    def retry(self, which: int) -> None:
        ended = [row["id"] for row in self.world.rows if row["state"] in ENDED]
        if ended:
            self.world.reopen(self.world.stories[str(chosen(ended, which))])

    def steer(self, which: int, how: str) -> None:
        if self.world.rollouts:
            self.world.steer(chosen(self.world.rollouts, which), how)

    def limit(self, owner: str, how: str | int | None) -> None:
        if how == "resume":
            self.world.resume(owner)
        elif isinstance(how, str):
            self.world.pause(owner, None if how == "pause" else 20)
        else:
            self.world.limit(owner, how)

    # --- time, the network, and who holds a row -----------------------------------------

    def advance(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    def keep_house(self, what: Sequence[str]) -> None:
        for verb in what:
            getattr(self.world, verb)()

    def disturb(self, how: str, which: list[int]) -> None:
        """Let hints be lost or forged, Redis be emptied, or somebody else hold a run's row."""
        if how == "lost":
            self.world.network.taken(which)
        elif how == "forged":
            self.world.forge(self.story(which[0]))
        elif how == "flushed":
            self.world.network.flush()
        else:
            self.world.hold(self.story(which[0]))

    # --- workers ------------------------------------------------------------------------

    def admit(self, who: int, which: list[int], *, keep: bool, is_unheard: bool) -> None:
        """Have some hints admitted; unheard, the answer never reaches the worker."""
        awake = self.those(lambda _: True)
        if awake:
            hints = self.world.network.taken(which, keep=keep)
            self.world.take(chosen(awake, who), hints, is_unheard=is_unheard)

    def start_all(self, who: int) -> None:
        """Have all hints admitted, and let all that was admitted begin."""
        awake = self.those(lambda _: True)
        if awake:
            worker = chosen(awake, who)
            self.world.take(worker, self.world.network.taken())
            for held in worker.waiting:
                self.world.begin(worker, held)

    def start(self, who: int, which: int) -> None:
        able = self.those(lambda worker: worker.waiting)
        if able:
            worker = chosen(able, who)
            self.world.begin(worker, chosen(worker.waiting, which))

    def finish(self, who: int, which: int, how: str) -> None:
        able = self.those(lambda worker: worker.running)
        if able:
            worker = chosen(able, who)
            self.world.finish(worker, chosen(worker.running, which), how)

    def finish_all(self, who: int, how: str) -> None:
        """Let all that runs on a worker end, and have it recorded."""
        able = self.those(lambda worker: worker.running)
        if able:
            worker = chosen(able, who)
            for held in worker.running:
                self.world.finish(worker, held, how)
            self.world.record(worker)

    def record(self, who: int, *, is_repeated: bool) -> None:
        able = self.those(lambda worker: worker.words)
        if able:
            self.world.record(chosen(able, who), is_repeated=is_repeated)

    def disturb_worker(self, who: int, how: str) -> None:
        """Let a worker beat, die, stop or freeze; a frozen one only thaws."""
        worker = chosen(self.world.workers, who)
        if worker.is_frozen or how == "freeze":
            worker.is_frozen = not worker.is_frozen
        else:
            getattr(self.world, how)(worker)

    def oversleep(self, who: int) -> None:
        """Freeze a worker that holds something past its lease; another takes over, it thaws."""
        able = self.those(lambda worker: worker.held)
        if able:
            late = chosen(able, who)
            late.is_frozen = True
            self.advance(31)
            self.keep_house(("rescue", "promote"))
            self.start_all(who)
            late.is_frozen = False


def play(
    clock: FakeClock, network: Network, *, examples: int, steps: int, number: int | None = None
) -> None:
    """Play so many sequences of so many steps."""

    def machine() -> Journeys:
        return Journeys(clock, network)

    run_state_machine_as_test(
        machine if number is None else seed(number)(machine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("examples", [12, pytest.param(60, marks=pytest.mark.proof)])
def test_journeys(clock: FakeClock, network: Network, examples: int) -> None:
    """Runs end, each outcome under the newest token, in caps and locks, by the table of moves."""
    play(clock, network, examples=examples, steps=30)


@pytest.mark.chaos
def test_journeys_at_length(clock: FakeClock, network: Network) -> None:
    """The same, for longer: SEED plays a sequence again."""
    print(f"\nSEED={SEED}")
    play(clock, network, examples=1_000, steps=50, number=SEED)
