"""Any acts in any order: the scripts agree with the reference, number by number."""

import os
from collections.abc import Callable, Sequence
from math import isclose
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fleet.fairness.accounts import Owner
from fleet.fairness.messages import Message
from fleet.fairness.queue import FairQueue, Taken
from fleet.keys import audited_key
from fleet.transport.scripts import source
from tests.fleet.fair_worlds import LEASE, SECOND, START, LuaQueue, connected

SEQUENCES = int(os.environ.get("FAIR_SEQUENCES", "20"))
STEPS = 30

OWNERS = ("acme", "globex", "stranger")
SUBMISSIONS = ("", "s")
LOCKS = ("x", "y")
WORKERS = ("w1", "w2", "w3")

client = connected()

messages = st.builds(
    Message,
    id=st.integers(0, 60).map(lambda number: f"m{number}:0"),
    owner=st.sampled_from(OWNERS),
    submission=st.sampled_from(SUBMISSIONS),
    priority=st.sampled_from((0, 5, 5, 9)),
    delay=st.sampled_from((0, 0, 0, 3 * SECOND)),
    deadline=st.sampled_from((None, None, None, 5 * SECOND)),
    lock=st.sampled_from(("", "", *LOCKS)),
    task=st.sampled_from(("t", "u")),
    body=st.just(b"{}"),
)
# Which lease, the time that is reported of it (us), and whether its number is right.
tellings = st.lists(
    st.tuples(
        st.integers(0, 30), st.sampled_from((0, 90_001, SECOND, 7 * SECOND)), st.integers(0, 9)
    ),
    min_size=1,
    max_size=4,
)


class Sequences(RuleBasedStateMachine):
    """Three owners, three workers, two locks, and every act of the queue."""

    def __init__(self) -> None:
        super().__init__()
        self.now = START
        self.model = FairQueue()
        self.lua = LuaQueue(client, f"fair-{uuid4().hex}")
        self.confirmed = dict.fromkeys(WORKERS, 0)

    def teardown(self) -> None:
        self.lua.erase()

    def both(self, act: str, *arguments: Any, **options: Any) -> Any:
        told = getattr(self.model, act)(self.now, *arguments, **options)
        assert getattr(self.lua, act)(self.now, *arguments, **options) == told
        return told

    def leases(
        self, told: Sequence[tuple[int, int, int]]
    ) -> tuple[str, list[tuple[str, int, int]]]:
        """Return a worker, and of some leases id, number and value; some are not its own."""
        held = sorted(self.model.leases.items())
        if not held:
            return "w1", [("m0:0", 1, 0)]
        named = [(*held[which % len(held)], value, luck) for which, value, luck in told]
        worker = named[0][1].worker
        return worker, [
            (mid, lease.number - (luck == 0), value) for mid, lease, value, luck in named
        ]

    @invariant()
    def the_audit_finds_nothing(self) -> None:
        """Counts match what is stored, and each owner stands where its account puts it."""
        # Not through `run`, which would repair the queue.
        self.lua.client.delete(audited_key(self.lua.name))
        self.lua.client.eval(source("audit"), 1, self.lua.name, self.now)
        assert not self.lua.client.hexists(self.lua.key("counters"), "mended")

    @initialize(new=st.lists(messages, min_size=6, max_size=12))
    def begin(self, new: list[Message]) -> None:
        self.both("enqueue", new)

    @rule(seconds=st.sampled_from((0.000001, 0.1, 1.0, 7.0, 31.0)))
    def wait(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)

    @rule(new=st.lists(messages, min_size=3, max_size=8))
    def enqueue(self, new: list[Message]) -> None:
        self.both("enqueue", new)

    @rule(
        worker=st.sampled_from(WORKERS),
        slots=st.integers(0, 4),
        more=st.integers(0, 3),
        budget=st.sampled_from((0, SECOND // 2, 9 * SECOND)),
        is_reply_lost=st.booleans(),
    )
    def take(self, worker: str, slots: int, more: int, budget: int, *, is_reply_lost: bool) -> None:
        self.taken(worker, slots, more, budget, is_reply_lost=is_reply_lost)

    @rule(worker=st.sampled_from(WORKERS), slots=st.integers(1, 4))
    def take_what_there_is(self, worker: str, slots: int) -> None:
        self.taken(worker, slots, more=4, budget=9 * SECOND)

    @rule(worker=st.sampled_from(WORKERS), run=st.sampled_from((90_001, SECOND, 7 * SECOND)))
    def run_all(self, worker: str, run: int) -> None:
        """Take some and run all that the worker holds to their ends."""
        self.taken(worker, 3, more=0, budget=0)
        held = [(mid, each) for mid, each in self.model.leases.items() if each.worker == worker]
        self.now += run
        self.both("finish", worker, [(mid, each.number, run) for mid, each in held])
        self.both("ack", worker, [(mid, each.number) for mid, each in held])

    def taken(
        self, worker: str, slots: int, more: int, budget: int, *, is_reply_lost: bool = False
    ) -> None:
        taken: Taken = self.both(
            "take",
            worker,
            lease=LEASE,
            confirmed=self.confirmed[worker],
            slots=slots,
            budget=budget,
            most=slots + more,
        )
        if not is_reply_lost:
            self.confirmed[worker] = taken.number
        if taken.is_empty:
            # No slot stays idle while something may run.
            assert not any(
                owner.may_run() and not owner.rests_until(self.now)
                for owner in self.model.owners.values()
            )

    @rule(told=tellings)
    def finish(self, told: list[tuple[int, int, int]]) -> None:
        self.both("finish", *self.leases(told))

    @rule(told=tellings)
    def ack(self, told: list[tuple[int, int, int]]) -> None:
        worker, named = self.leases(told)
        self.both("ack", worker, [(mid, number) for mid, number, _ in named])

    @rule(told=tellings)
    def done(self, told: list[tuple[int, int, int]]) -> None:
        self.both("done", *self.leases(told))

    @rule(told=tellings)
    def give_back(self, told: list[tuple[int, int, int]]) -> None:
        worker, named = self.leases(told)
        # Of these run times some are rejected at once, some given back at once, some later.
        back = [(mid, each, max(0, us - SECOND), us < SECOND // 2) for mid, each, us in named]
        self.both("give_back", worker, back)

    @rule(worker=st.sampled_from(WORKERS))
    def renew(self, worker: str) -> None:
        self.both("renew", worker)

    @rule(told=tellings)
    def keep(self, told: list[tuple[int, int, int]]) -> None:
        worker, named = self.leases(told)
        self.both("keep", worker, [(mid, number) for mid, number, _ in named])
        self.confirmed[worker] = 0

    @rule(worker=st.sampled_from(WORKERS), limit=st.sampled_from((1, 2, 100)))
    def leave(self, worker: str, limit: int) -> None:
        self.both("leave", worker, limit=limit)
        self.confirmed[worker] = self.model.takes.get(worker, (0, 0))[0]

    @rule(
        name=st.sampled_from(OWNERS),
        weight=st.sampled_from((0.5, 1, 3)),
        cap=st.sampled_from((0, 0, 1, 3)),
        is_paused=st.integers(0, 5).map(lambda luck: luck == 1),
        rate=st.sampled_from((0, 0, 0.5, 3)),
        burst=st.sampled_from((1, 2)),
    )
    def set_owner(self, name: str, **settings: Any) -> None:
        self.both("set_owner", name, **settings)

    @rule(numbers=st.lists(st.integers(0, 60), min_size=1, max_size=2))
    def withdraw(self, numbers: list[int]) -> None:
        self.both("withdraw", [f"m{number}:0" for number in numbers])

    @rule(luck=st.integers(0, 9))
    def purge(self, luck: int) -> None:
        if luck == 1:
            self.both("purge")

    def act_at_random(self, random: Random) -> None:
        """Act as in a busy hour: most acts publish, take and end; all others are rare."""
        worker, told = random.choice(WORKERS), random_tellings(random)
        acts: list[tuple[int, Callable[[], None]]] = [
            (6, lambda: self.wait(random.choice((0.000001, 0.1, 1.0, 1.0, 7.0, 31.0)))),
            (
                5,
                lambda: self.enqueue([random_message(random) for _ in range(random.randint(1, 8))]),
            ),
            (5, lambda: self.taken(worker, random.randint(0, 4), random.randint(0, 3), 9 * SECOND)),
            (1, lambda: self.taken(worker, 3, more=1, budget=SECOND, is_reply_lost=True)),
            (4, lambda: self.finish(told)),
            (3, lambda: self.ack(told)),
            (3, lambda: self.done(told)),
            (2, lambda: self.give_back(told)),
            (1, lambda: self.renew(worker)),
            (1, lambda: self.keep(told)),
            (1, lambda: self.leave(worker, random.choice((1, 100)))),
            (2, lambda: self.set_owner(random.choice(OWNERS), **random_settings(random))),
            (1, lambda: self.withdraw(random.sample(range(60), 4))),
            (1, lambda: self.purge(random.randint(0, 9))),
        ]
        [(_, act)] = random.choices(acts, weights=[often for often, _ in acts])
        act()
        self.numbers_agree()
        self.each_message_is_in_one_place()
        self.accounts_add_up()
        self.nothing_is_parked_for_ever()

    @invariant()
    def numbers_agree(self) -> None:
        """Both have the same messages in the same places, and the same numbers of all owners."""
        told, meant = scripts_see(self.lua), reference_sees(self.model)
        assert told.keys() == meant.keys()
        for name, value in meant.items():
            assert are_close(told[name], value), (name, told[name], value)

    @invariant()
    def each_message_is_in_one_place(self) -> None:
        model = self.model
        places = [*model.leases, *model.delayed]
        places += [mid for line in (*model.ready.values(), *model.parked.values()) for mid in line]
        assert sorted(places) == sorted(model.messages)
        waiting = sum(len(line) for line in (*model.ready.values(), *model.parked.values()))
        assert client.llen(self.lua.name) == waiting

    @invariant()
    def accounts_add_up(self) -> None:
        model = self.model
        for name, owner in model.owners.items():
            running = [
                lease
                for mid, lease in model.leases.items()
                if model.messages[mid].owner == name and not lease.is_finished
            ]
            assert owner.running == len(running)
            assert owner.expected == sum(lease.expected for lease in running)
            ran = owner.ran + owner.running * (self.now - owner.ran_at)
            assert ran == sum(self.now - lease.at for lease in running)
            lines = [line for (of, _), line in model.ready.items() if of == name]
            assert owner.ready == sum(map(len, lines))
            assert not owner.cap or name not in model.eligible or owner.running < owner.cap
            if name in model.eligible:
                assert owner.may_run()
                assert model.eligible[name] <= owner.effective(self.now)
            else:
                assert not owner.may_run() or name in model.resting

    @invariant()
    def nothing_is_parked_for_ever(self) -> None:
        """A run holds each lock; behind a free lock each owner has a message that may take it."""
        model = self.model
        assert all(not model.leases[mid].is_finished for mid in model.locks.values())
        for lock, name in model.parked:
            let = [
                mid
                for (owner, _), line in model.ready.items()
                for mid in line
                if owner == name and model.messages[mid].lock == lock
            ]
            assert lock in model.locks or let


def random_message(random: Random) -> Message:
    return Message(
        f"m{random.randint(0, 60)}:0",
        random.choice(OWNERS),
        random.choice(SUBMISSIONS),
        priority=random.choice((0, 5, 5, 9)),
        delay=random.choice((0, 0, 0, 3 * SECOND)),
        deadline=random.choice((None, None, None, 5 * SECOND)),
        lock=random.choice(("", "", *LOCKS)),
        task=random.choice(("t", "u")),
    )


def random_tellings(random: Random) -> list[tuple[int, int, int]]:
    runs = (0, 90_001, SECOND, 7 * SECOND)
    return [
        (random.randint(0, 30), random.choice(runs), random.randint(0, 9))
        for _ in range(random.randint(1, 4))
    ]


def random_settings(random: Random) -> dict[str, Any]:
    return {
        "weight": random.choice((0.5, 1, 3)),
        "cap": random.choice((0, 0, 1, 3)),
        "is_paused": random.random() < 0.2,
        "rate": random.choice((0, 0, 0.5, 3)),
        "burst": random.choice((1, 2)),
    }


@pytest.mark.parametrize(
    "part", [*range(4), *(pytest.param(part, marks=pytest.mark.proof) for part in range(4, 10))]
)
def test_busy_sequences(part: int) -> None:
    """The same, where the random numbers are not hypothesis's: these queues are full and busy."""
    for seed in range(part, 3 * SEQUENCES, 10):
        machine = Sequences()
        random = Random(seed)
        machine.begin([random_message(random) for _ in range(10)])
        for step in range(STEPS):
            try:
                machine.act_at_random(random)
            except AssertionError as error:
                raise AssertionError(f"sequence {seed}, step {step}") from error
        machine.teardown()


# As `lua/shared/accounts.lua` has them.
PACKED = [
    "weight",
    "cap",
    "paused",
    "rate",
    "burst",
    "ready",
    "running",
    "expected",
    "ran",
    "ran_at",
    "virtual",
    "busy",
    "turn",
    "tat",
    "served",
    "finished",
]
ACCOUNT = """
local packed = redis.call('HGET', KEYS[1], ARGV[1])
local values = packed and {cmsgpack.unpack(packed)} or {}
for at, value in ipairs(values) do
    values[at] = string.format('%.17g', value)
end
return values
"""


def scripts_see(lua: LuaQueue) -> dict[str, Any]:
    """Return the stored values, in the shape of `reference_sees`."""
    sets = ["eligible", "resting", "delayed", "workers"]
    sets += [f"submissions:{owner}" for owner in OWNERS]
    sets += [f"ready:{owner}|{name}" for owner in OWNERS for name in SUBMISSIONS]
    sets += [f"parked:{owner}|{lock}" for owner in OWNERS for lock in LOCKS]
    hashes = ["state", "locks", "expected"]
    base = lua.key("state").removesuffix("state")
    with client.pipeline(transaction=False) as pipe:
        for name in sets:
            pipe.zrange(base + name, 0, -1, withscores=True)
        for name in hashes:
            pipe.hgetall(base + name)
        for owner in OWNERS:
            pipe.eval(ACCOUNT, 1, base + "accounts", owner)
        for worker in WORKERS:
            pipe.hkeys(f"{base}held:{worker}")
        pipe.hkeys(base + "meta")
        pipe.hkeys(base + "body")
        found = pipe.execute()
    seen: dict[str, Any] = {
        name: {member.decode(): score for member, score in rows}
        for name, rows in zip(sets, found, strict=False)
    }
    for name, row in zip(hashes, found[len(sets) :], strict=False):
        seen[name] = {field.decode(): value.decode() for field, value in row.items()}
    accounts = found[len(sets) + len(hashes) :][: len(OWNERS)]
    *held, meta, body = found[len(sets) + len(hashes) + len(OWNERS) :]
    for worker, ids in zip(WORKERS, held, strict=True):
        seen[f"held:{worker}"] = dict.fromkeys(sorted(mid.decode() for mid in ids))
    assert sorted(meta) == sorted(body)
    seen["messages"] = dict.fromkeys(sorted(mid.decode() for mid in meta))
    numbers = ("virtual", "busy", "sequence", "lease", "average")
    seen["state"] = {name: float(seen["state"].get(name, 0)) for name in numbers}
    for owner, account in zip(OWNERS, accounts, strict=True):
        seen[f"owner:{owner}"] = (
            dict(zip(PACKED, map(float, account), strict=True)) if account else {}
        )
    seen["expected"] = {task: float(value) for task, value in seen["expected"].items()}
    return seen


def reference_sees(model: FairQueue) -> dict[str, Any]:
    seen: dict[str, Any] = {
        "eligible": model.eligible,
        "resting": model.resting,
        "delayed": model.delayed,
        "workers": model.workers,
        "locks": model.locks,
        "expected": model.expected,
        "messages": dict.fromkeys(sorted(model.messages)),
        "state": {
            "virtual": model.virtual,
            "busy": model.busy,
            "sequence": model.sequence,
            "lease": model.lease_number,
            "average": model.average,
        },
    }
    for worker in WORKERS:
        held = [mid for mid, lease in model.leases.items() if lease.worker == worker]
        seen[f"held:{worker}"] = dict.fromkeys(sorted(held))
    for name in OWNERS:
        seen[f"submissions:{name}"] = model.submissions.get(name, {})
        for submission in SUBMISSIONS:
            seen[f"ready:{name}|{submission}"] = model.ready.get((name, submission), {})
        for lock in LOCKS:
            seen[f"parked:{name}|{lock}"] = model.parked.get((lock, name), {})
        owner = model.owners.get(name)
        seen[f"owner:{name}"] = {} if owner is None else numbers_of(owner)
    return seen


def numbers_of(owner: Owner) -> dict[str, float]:
    """Return an owner's numbers by the names under which the scripts store them."""
    return {
        name.replace("is_paused", "paused"): float(value)
        for name, value in vars(owner).items()
        if name != "name"
    }


def are_close(told: Any, meant: Any) -> bool:
    if isinstance(meant, dict):
        return told.keys() == meant.keys() and all(
            are_close(told[name], value) for name, value in meant.items()
        )
    if isinstance(meant, int | float):
        return isclose(told, meant, rel_tol=1e-9)
    return bool(told == meant)


TestSequences = Sequences.TestCase
TestSequences.__doc__ = __doc__
TestSequences.settings = settings(
    max_examples=SEQUENCES,
    stateful_step_count=STEPS,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


class MoreSequences(Sequences):
    """Three times as many."""


class ManySequences(Sequences):
    """Thirty times as many."""


TestMoreSequences = pytest.mark.proof(MoreSequences.TestCase)
TestMoreSequences.settings = settings(TestSequences.settings, max_examples=3 * SEQUENCES)

TestManySequences = pytest.mark.chaos(ManySequences.TestCase)
TestManySequences.settings = settings(TestSequences.settings, max_examples=30 * SEQUENCES)
