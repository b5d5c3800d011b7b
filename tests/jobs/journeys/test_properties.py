"""Whatever happens in whatever order: every run's history is a path through the table of moves."""

import time
from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet import Kind, Report
from jobs.core.errors import StateConflict
from jobs.core.states import ACTIVE, State
from jobs.models import Attempt, Owner, Run
from jobs.owners.limits import pause_owner, resume_owner
from jobs.runs.cancellation import cancel_runs
from jobs.runs.manual_retry import reopen_runs
from jobs.runs.recording import move, record
from jobs.system import promotion
from jobs.system.heartbeat import leave
from tests.jobs.scenes import age, ask, living_worker, states, submitted

RUNS = 4
STEPS = 40
KINDS = list(Kind)
# What only a worker can tell of, and what is the other door's own, is not for `move`.
TARGETS = [State.SCHEDULED, State.HELD, State.QUEUED, State.CANCELLING, State.CANCELLED]


class Journeys:
    """Four runs of one owner, a worker that comes and goes, and everybody who may move a run."""

    def __init__(self, owner: Owner, random: Random) -> None:
        self.owner = owner
        self.random = random
        self.runs = submitted(
            owner,
            RUNS,
            countdown=random.choice([0, 60]),
            lock=random.choice(["", "door"]),
            deadline_seconds=600,
        )
        self.worker = living_worker()
        self.tokens = {run.id: 0 for run in self.runs}
        self.told: list[str] = []

    def step(self) -> None:
        """Do something to somebody, what workers do more often than what people do."""
        acts: list[Callable[[], None]] = [
            *[self.admit] * 8,
            *[self.report] * 8,
            *[self.start] * 4,
            *[self.let_time_pass] * 4,
            *[self.reopen] * 4,
            self.cancel,
            self.lose_the_worker,
            self.pause,
            self.move,
        ]
        act = self.random.choice(acts)
        self.told.append(act.__name__)
        act()

    def one(self) -> Run:
        return self.random.choice(self.runs)

    def some(self) -> list[Run]:
        return self.random.sample(self.runs, k=self.random.randint(1, RUNS))

    def held(self) -> Run:
        """Return a run that the worker holds, mostly."""
        held = [run for run in self.runs if run.state in ACTIVE]
        return self.random.choice(held if held and self.random.random() < 0.9 else self.runs)

    def admit(self) -> None:
        ask(self.worker, self.some())

    def start(self) -> None:
        record([self._word(self.held(), Kind.STARTED)])

    def report(self) -> None:
        run = self.held()
        older = self.random.choice([0, 0, 0, 1])
        kinds = self.random.sample(KINDS, k=self.random.randint(1, 2))
        record([self._word(run, kind, older=older) for kind in kinds])

    def _word(self, run: Run, kind: Kind, *, older: int = 0) -> Report:
        moment = time.monotonic() + self.random.uniform(-100, 100)
        delay = self.random.choice([None, 0.0, 60.0])
        return Report(str(run.id), self.tokens[run.id] - older, kind, moment, delay=delay)

    def let_time_pass(self) -> None:
        column = self.random.choice(["next_at"] * 9 + ["deadline_at"])
        for run in self.some():
            age(run, column, seconds=1)
        promotion.expire()
        promotion.promote()

    def cancel(self) -> None:
        cancel_runs([self.one().id])

    def reopen(self) -> None:
        with suppress(StateConflict):
            reopen_runs([self.one().id])

    def move(self) -> None:
        move([self.one().id], to=self.random.choice(TARGETS), cause="why")

    def lose_the_worker(self) -> None:
        leave(self.worker)
        assert not Run.objects.active().filter(worker_id=self.worker).exists()
        self.worker = living_worker()

    def pause(self) -> None:
        self.random.choice([pause_owner, resume_owner, resume_owner])(self.owner)

    def check(self) -> None:
        """Hold what must be true after every step."""
        for run in self.runs:
            path = states(run)
            assert run.token == path.count("admitted"), "a token for each admission"
            assert run.token >= self.tokens[run.id], "a token is given out once"
            self.tokens[run.id] = run.token
            assert run.attempt_count <= run.token
            assert Attempt.objects.filter(run_id=run.id).count() <= run.token
            if run.state in ACTIVE:
                assert run.worker_id == self.worker
        locked = Run.objects.active().filter(id__in=self.tokens).exclude(lock_key="")
        assert locked.count() <= 1, "a lock has one holder"


@pytest.mark.proof
@settings(
    max_examples=settings.default.max_examples // 10,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
def test_every_history_is_a_path_through_the_table(
    acme: Owner, broker: redis.Redis, seed: int
) -> None:
    """Two doors, and nine ways to knock, in any order, with tokens of any age."""
    resume_owner(acme)
    journeys = Journeys(acme, Random(seed))
    for _ in range(STEPS):
        journeys.step()
        try:
            journeys.check()
        except AssertionError as error:
            error.add_note(" → ".join(journeys.told))
            raise
