"""The world of the journeys: every verb that moves a run, and what must be true after each."""

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from itertools import chain, count
from math import inf
from typing import Any

from django.db import connection, transaction

from fleet import Admission, Kind, Refusal, Report
from fleet.contract import BUSY_ROW
from jobs.core.conf import setting
from jobs.core.errors import StateConflict
from jobs.core.states import ACTIVE, ENDED, State
from jobs.models import Owner, Run
from jobs.owners.limits import limit_owner, pause_owner, resume_owner
from jobs.rollouts import rounds
from jobs.rollouts.waves import Waves
from jobs.runs.admission import admit
from jobs.runs.cancellation import cancel_runs
from jobs.runs.manual_retry import reopen_runs
from jobs.runs.recording import record
from jobs.runs.submission import submit_many
from jobs.system import promotion, sweep
from jobs.system.heartbeat import beat, leave
from jobs.system.promotion import queue_due
from jobs.system.rescue import rescue_runs
from tests.jobs.conftest import TABLES
from tests.jobs.journeys.clock import FakeClock
from tests.jobs.journeys.network import Network, OnItsWay, asks
from tests.jobs.journeys.rolling import Rolling, Rollouts
from tests.jobs.journeys.story import Log, Story, read_runs
from tests.jobs.journeys.worker import Held, Word, Worker
from tests.jobs.scenes import open_transaction

OWNERS = ("acme", "northwind")
WORKERS = 3
HOP = 15.0
"""Seconds. Time passes in steps no longer than this, and who is awake beats after each."""


class Rollback(Exception):
    """The caller's transaction fails after the submit."""


class World:
    """Two owners, three workers, an operator, and a network that loses and doubles hints."""

    def __init__(self, clock: FakeClock, network: Network) -> None:
        clock.restart()
        network.flush()
        network.hints.clear()
        self.clock, self.network = clock, network
        self._held_row = ExitStack()
        self.owners = {slug: Owner.objects.create(slug=slug) for slug in OWNERS}
        self.caps: dict[str, float] = dict.fromkeys(OWNERS, inf)
        self.paused_until: dict[str, float] = dict.fromkeys(OWNERS, 0.0)
        self.stories: dict[str, Story] = {}
        self.rollouts = Rollouts()
        self.rows: list[dict[str, Any]] = []
        self.log = Log()
        self._numbers = count(1)
        self.workers = [self._booted() for _ in range(WORKERS)]

    def end(self) -> None:
        """Leave nothing behind."""
        self.let_go()
        with connection.cursor() as cursor:
            for table in TABLES:
                cursor.execute(f"DELETE FROM {table}")

    # --- callers and operators ----------------------------------------------------------

    def submit(
        self,
        owner: str,
        number: int,
        *,
        is_committed: bool = True,
        waves: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """Submit some runs; or fail in the transaction that did."""
        # Ids of one moment are in no order.
        self.clock.advance(1)
        ids = []
        with suppress(Rollback), transaction.atomic():
            calls = [{"n": n} for n in range(number)]
            cut = Waves(**waves) if waves else None
            submission = submit_many("tests.record", calls, owner=owner, waves=cut, **options)
            runs = list(Run.objects.filter(submission=submission).order_by("id"))
            ids = [run.id for run in runs]
            if not is_committed:
                raise Rollback
        self.log.submitted(ids, is_committed=is_committed)
        if not is_committed:
            return
        due_at = self.clock.now + (options.get("countdown") or 0)
        deadline_at = due_at + (options.get("deadline_seconds") or inf)
        for run in runs:
            lock, attempts = run.lock_key, run.max_attempts
            story = Story(run.id, owner, lock, attempts, due_at, deadline_at)
            self.stories[str(run.id)] = story
        if cut is not None:
            rolling = self.rollouts.add(submission.pk, cut, ids)
            for run_id in chain.from_iterable(rolling.waves[1:]):
                # It counts from the release.
                self.stories[str(run_id)].deadline_at = inf

    def cancel(self, story: Story) -> None:
        self.let_go()
        if cancel_runs([story.id]):
            story.is_over = Run.objects.get(id=story.id).state == State.CANCELLED
        self.look()

    def reopen(self, story: Story) -> None:
        self.let_go()
        with suppress(StateConflict):
            reopen_runs([story.id])
            story.reopen(now=self.clock.now)

    def steer(self, which: Rolling, how: str) -> None:
        """Do to a rollout what an operator may do."""
        self.let_go()
        self.rollouts.steer(which, how, self.stories, now=self.clock.now)

    def look(self) -> None:
        self.rollouts.look(now=self.clock.now)

    def pause(self, owner: str, seconds: float | None) -> None:
        until = inf if seconds is None else self.clock.now + seconds
        pause_owner(
            self.owners[owner],
            until=None if seconds is None else datetime.fromtimestamp(until, UTC),
        )
        self.paused_until[owner] = until

    def resume(self, owner: str) -> None:
        resume_owner(self.owners[owner])
        self.paused_until[owner] = 0.0

    def limit(self, owner: str, most: int | None) -> None:
        limit_owner(self.owners[owner], max_running=most)
        self.caps[owner] = inf if most is None else most

    # --- time and what it brings --------------------------------------------------------

    def pass_time(self, seconds: float) -> None:
        """Let time pass; workers that are awake beat as they should."""
        while seconds > 0:
            hop = min(seconds, HOP)
            seconds -= hop
            self.clock.advance(hop)
            # Before anybody beats: the first who does may rescue what another has let go.
            self._note_lapses()
            for worker in self.workers:
                if not worker.is_frozen:
                    self.beat(worker)

    def _note_lapses(self) -> None:
        """What a worker holds that was silent for longer than the lease may be anybody's."""
        for worker in self.workers:
            if self.clock.now - worker.beat_at > setting("LEASE_SECONDS"):
                for held in worker.held:
                    if not held.is_lapsed:
                        held.is_lapsed = True
                        self.log.body("frozen", held.body)

    def promote(self) -> None:
        promotion.expire()
        promotion.promote()
        self.look()

    def roll(self) -> None:
        self.let_go()
        self.look()
        self.rollouts.lower()
        while rounds.advance(queue_due):
            self.look()

    def rescue(self) -> None:
        rescue_runs()
        self.look()

    def sweep(self) -> None:
        sweep.sweep_hints()

    def forge(self, story: Story) -> None:
        """Let a hint arrive of a run that may be in any state."""
        self.network.hints.append(OnItsWay(str(story.id), story.token, "tests.record"))

    def hold(self, story: Story) -> None:
        """Have another connection hold the row of a run, and no other, from step to step."""
        self.let_go()
        statement = "SELECT FROM fake.jobs_run WHERE id = %s FOR UPDATE"
        self._held_row.enter_context(open_transaction(statement, story.id))

    def let_go(self) -> None:
        self._held_row.close()

    # --- workers ------------------------------------------------------------------------

    def _booted(self) -> Worker:
        worker = Worker(self.clock, f"w{next(self._numbers)}@here")
        self.beat(worker)
        return worker

    def beat(self, worker: Worker) -> None:
        worker.hear(beat(worker.node, [held.run_id for held in worker.held]).cancel)
        worker.beat_at = self.clock.now
        self.look()

    def take(self, worker: Worker, hints: list[OnItsWay], *, is_unheard: bool = False) -> None:
        """Have hints admitted; what is refused for the moment goes back."""
        answers = admit(worker.node.id, asks(hints))
        assert answers.keys() == {hint.run_id for hint in hints}
        for hint in hints:
            if answers[hint.run_id] is Refusal.BUSY:
                self.network.hints.append(hint)
        admissions = [each for each in answers.values() if isinstance(each, Admission)]
        for admission in admissions:
            held = Held(admission, self.clock.now, next(self._numbers))
            self._admitted(worker, held)
            if not is_unheard:
                worker.held.append(held)
        self._nobody_has_too_much({self.stories[each.run_id].owner for each in admissions})

    def begin(self, worker: Worker, held: Held) -> None:
        is_first = held.admission.records_start_first and worker.may_begin(held)
        if is_first and not self._start_recorded(worker, held):
            return
        if worker.begin(held):
            story = self.stories[held.run_id]
            story.start_count += held.token > story.asked_after
            assert story.start_count <= story.max_attempts, "started more often than allowed"
            self.log.body("start", held.body, run=held.run_id, token=held.token)

    def _start_recorded(self, worker: Worker, held: Held) -> bool:
        """Record that a last attempt starts, before it does; False when it does not now."""
        start = Report(held.run_id, held.token, Kind.STARTED, self.clock.monotonic(self.clock.now))
        state = record([start]).get(held.run_id)
        if state is None:
            assert held.is_lapsed, "the word of a living worker counts"
            worker.held.remove(held)
        held.is_cancelled = held.is_cancelled or state == State.CANCELLING
        return state in (State.RUNNING, State.CANCELLING)

    def finish(self, worker: Worker, held: Held, way: str) -> None:
        if way == "terminated" and not held.is_cancelled:
            way = "raises"
        worker.end(held, way)
        if way in ("succeeds", "raises"):
            event = "returned" if way == "succeeds" else "raised"
            self.log.body(event, held.body, run=held.run_id, token=held.token)
        else:
            self.log.body("killed", held.body)

    def record(self, worker: Worker, *, is_repeated: bool = False) -> None:
        """Record all that a worker has to say; repeated, its first answer was lost."""
        newest: dict[str, Word] = {}
        for word in worker.words:
            kept = newest.setdefault(word.held.run_id, word)
            if (kept.held.token, kept.is_end) < (word.held.token, word.is_end):
                newest[word.held.run_id] = word
        answers = record(worker.reports())
        if is_repeated:
            again = record(worker.reports())
            # Not that of an attempt which lapsed: the same worker may be at the next one.
            ends = {run_id for run_id, word in newest.items() if word.is_end}
            assert not ends & again.keys() - _busy(answers), "an end is recorded once"
        words, worker.words = worker.words, []
        for word in words:
            if answers.get(word.held.run_id) == BUSY_ROW:
                worker.words.append(word)
            elif word.is_end:
                worker.held.remove(word.held)
        for run_id, word in newest.items():
            self._answered(word, answers.get(run_id))
        self.look()

    def die(self, worker: Worker) -> None:
        """Kill a worker with all that it holds; another boots in its place."""
        self._kill_bodies(worker)
        self.workers[self.workers.index(worker)] = self._booted()

    def stop(self, worker: Worker) -> None:
        """Stop a worker: what has not started is given back, what runs is killed."""
        for held in worker.waiting:
            worker.hand_back(held)
        self.record(worker)
        self._kill_bodies(worker)
        leave(worker.node.id)
        self.workers[self.workers.index(worker)] = self._booted()

    def _kill_bodies(self, worker: Worker) -> None:
        for held in worker.running:
            self.log.body("killed", held.body)

    # --- what must be true --------------------------------------------------------------

    def _admitted(self, worker: Worker, held: Held) -> None:
        """Each admission: one for its token, of a run that may start now, to who is alive."""
        story, now = self.stories[held.run_id], self.clock.now
        assert held.token == story.token + 1, "one admission for each token"
        story.token = held.token
        assert not story.is_over, "what has ended, or was cancelled, starts no more"
        assert story.due_at <= now, "not before it is due"
        assert self.rollouts.lets_start(story.id), "not before its wave, nor after a stop"
        assert held.admission.attempt > 1 or now < story.deadline_at, "not after its deadline"
        assert held.admission.attempt <= story.max_attempts, "not more often than allowed"
        assert self.paused_until[story.owner] <= now, "not while its owner is paused"
        assert now - worker.beat_at < setting("LEASE_SECONDS"), "not to a worker that is gone"

    def _nobody_has_too_much(self, owners: set[str]) -> None:
        """Among workers that keep their leases: one holder a run and lock, caps kept.

        A cap that was lowered stops no run; it is these owners' who were just given one.
        """
        held = [
            self.stories[held.run_id]
            for worker in self.workers
            for held in worker.held
            if not held.is_lapsed
        ]
        _each_once((str(story.id) for story in held), "a run has one holder")
        _each_once((story.lock for story in held if story.lock), "a lock has one holder")
        for owner, number in Counter(story.owner for story in held).items():
            assert owner not in owners or number <= self.caps[owner], "a cap is kept"

    def _answered(self, word: Word, state: str | None) -> None:
        """The newest token is believed, once; so is every worker that kept its lease."""
        story, token = self.stories[word.held.run_id], word.held.token
        if state == BUSY_ROW:
            return
        if state is None:
            assert word.held.is_lapsed, "the word of a living worker counts"
            return
        assert token == story.token, "only the newest token is believed"
        assert token not in story.ended, "an attempt ends once"
        if word.is_end:
            story.ended.add(token)
            expected = State.QUEUED.value if word.kind is Kind.GIVEN_BACK else word.kind.value
            is_cancel = state == State.CANCELLED and word.kind is not Kind.SUCCEEDED
            assert state == expected or is_cancel
            story.is_over = state in ENDED

    def check(self) -> None:
        """After every step: the judge finds nothing, and the rows agree with each other."""
        self.rows = read_runs()
        verdict = self.log.verdict(self.rows)
        verdict.found["lost"].clear()
        assert verdict.ok, verdict.report()
        active = [run for run in self.rows if run["state"] in ACTIVE]
        locks = (run["lock_key"] for run in active if run["lock_key"])
        _each_once(locks, "a lock has one holder")
        for run in self.rows:
            token = self.stories[str(run["id"])].token
            assert run["token"] == token, "tokens come from admissions"
            assert run["attempt_count"] <= run["max_attempts"]
            assert (run["ended_at"] is not None) == (run["state"] in ENDED)
            waits_in = State.HELD if run["blocked_by"] == "wave" else State.QUEUED
            assert not run["blocked_by"] or run["state"] == waits_in

    # --- the end ------------------------------------------------------------------------

    def drain(self) -> None:
        """With all workers alive and time going on, everything ends."""
        self.let_go()
        for owner in OWNERS:
            self.resume(owner)
        for worker in list(self.workers):
            worker.is_frozen = False
            self.beat(worker)
        for _ in range(30):
            self._work_on()
            self.check()
            if all(run["state"] in ENDED for run in self.rows) and self.rollouts.are_over():
                break
            # Nobody holds anything: a long silence is no loss.
            self.clock.advance(100)
            for worker in self.workers:
                self.beat(worker)
            self.rescue()
            for rolling, how in self.rollouts.stuck():
                self.steer(rolling, how)
            self.roll()
            self.promote()
            self.sweep()
        assert self.rollouts.are_over(), "a rollout ends with its runs"
        verdict = self.log.verdict(self.rows)
        assert verdict.ok, verdict.report()

    def _work_on(self) -> None:
        for worker in self.workers:
            while True:
                for held in worker.waiting:
                    self.begin(worker, held)
                for held in worker.running:
                    self.finish(worker, held, "succeeds")
                self.record(worker)
                if not self.network.collect():
                    break
                self.take(worker, self.network.taken())


def _each_once(names: Iterable[str], rule: str) -> None:
    twice = [name for name, number in Counter(names).items() if number > 1]
    assert not twice, f"{rule}: {twice}"


def _busy(answers: Any) -> set[str]:
    return {run_id for run_id, state in answers.items() if state == BUSY_ROW}
