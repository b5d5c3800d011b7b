"""Any acts in any order: the scripts agree with the reference, number by number."""

import os
from math import isclose
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
RUNS = (0, 90_001, SECOND, 7 * SECOND)
"""Run times, in microseconds."""

client = connected()


class Sequence:
    """One queue on both engines: three owners, three workers, two locks, and every act."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = START
        self.model = FairQueue()
        self.lua = LuaQueue(client, f"fair-{uuid4().hex}")
        self.confirmed = dict.fromkeys(WORKERS, 0)
        self.acts: list[Any] = []
        self.both("enqueue", [self.message() for _ in range(10)])

    def act(self) -> None:
        """Act as in a busy hour: most acts publish, take and end; all others are rare."""
        often = {self.wait: 6, self.enqueue: 5, self.take: 5, self.finish: 4, self.ack: 3}
        often |= {self.done: 3, self.give_back: 2, self.set_owner: 2, self.run_all: 1}
        rare = (self.renew, self.keep, self.leave, self.withdraw, self.purge)
        often |= dict.fromkeys(rare, 1)
        [act] = self.random.choices([*often], weights=[*often.values()])
        act()

    def both(self, act: str, *arguments: Any, **options: Any) -> Any:
        self.acts.append((self.now - START, act, arguments, options))
        told = getattr(self.model, act)(self.now, *arguments, **options)
        assert getattr(self.lua, act)(self.now, *arguments, **options) == told
        return told

    def message(self) -> Message:
        pick = self.random.choice
        return Message(
            f"m{self.random.randint(0, 60)}:0",
            pick(OWNERS),
            pick(SUBMISSIONS),
            priority=pick((0, 5, 5, 9)),
            delay=pick((0, 0, 0, 3 * SECOND)),
            deadline=pick((None, None, None, 5 * SECOND)),
            lock=pick(("", "", *LOCKS)),
            task=pick(("t", "u")),
            body=b"{}",
        )

    def leases(self) -> tuple[str, list[tuple[str, int, int]]]:
        """Return a worker, and id, number and run time of leases; some are not its own."""
        held = sorted(self.model.leases.items())
        if not held:
            return "w1", [("m0:0", 1, 0)]
        some = [self.random.choice(held) for _ in range(self.random.randint(1, 4))]
        return some[0][1].worker, [
            (mid, lease.number - (self.random.randint(0, 9) == 0), self.random.choice(RUNS))
            for mid, lease in some
        ]

    def wait(self) -> None:
        self.now += round(self.random.choice((0.000001, 0.1, 1.0, 1.0, 7.0, 31.0)) * SECOND)

    def enqueue(self) -> None:
        self.both("enqueue", [self.message() for _ in range(self.random.randint(1, 8))])

    def take(self) -> None:
        self.take_by(self.random.choice(WORKERS), self.random.randint(0, 4))

    def take_by(self, worker: str, slots: int) -> None:
        taken: Taken = self.both(
            "take",
            worker,
            lease=LEASE,
            confirmed=self.confirmed[worker],
            slots=slots,
            budget=self.random.choice((0, SECOND // 2, *[9 * SECOND] * 4)),
            most=slots + self.random.randint(0, 4),
        )
        if self.random.randint(0, 9):  # else the reply is lost
            self.confirmed[worker] = taken.number
        if taken.is_empty:
            # No slot stays idle while something may run.
            assert not any(
                owner.may_run() and not owner.rests_until(self.now)
                for owner in self.model.owners.values()
            )

    def run_all(self) -> None:
        """Take some, and run all that the worker holds to their ends."""
        worker, run = self.random.choice(WORKERS), self.random.choice(RUNS)
        self.take_by(worker, 3)
        held = [(mid, each) for mid, each in self.model.leases.items() if each.worker == worker]
        self.now += run
        self.both("finish", worker, [(mid, each.number, run) for mid, each in held])
        self.both("ack", worker, [(mid, each.number) for mid, each in held])

    def finish(self) -> None:
        self.both("finish", *self.leases())

    def ack(self) -> None:
        worker, named = self.leases()
        self.both("ack", worker, [(mid, number) for mid, number, _ in named])

    def done(self) -> None:
        self.both("done", *self.leases())

    def give_back(self) -> None:
        worker, named = self.leases()
        # Of these run times some are rejected at once, some given back at once, some later.
        back = [(mid, each, max(0, us - SECOND), us < SECOND // 2) for mid, each, us in named]
        self.both("give_back", worker, back)

    def renew(self) -> None:
        self.both("renew", self.random.choice(WORKERS))

    def keep(self) -> None:
        worker, named = self.leases()
        self.both("keep", worker, [(mid, number) for mid, number, _ in named])
        self.confirmed[worker] = 0

    def leave(self) -> None:
        worker = self.random.choice(WORKERS)
        self.both("leave", worker, limit=self.random.choice((1, 2, 100)))
        self.confirmed[worker] = self.model.takes.get(worker, (0, 0))[0]

    def set_owner(self) -> None:
        self.both(
            "set_owner",
            self.random.choice(OWNERS),
            weight=self.random.choice((0.5, 1, 3)),
            cap=self.random.choice((0, 0, 1, 3)),
            is_paused=self.random.randint(0, 4) == 0,
            rate=self.random.choice((0, 0, 0.5, 3)),
            burst=self.random.choice((1, 2)),
        )

    def withdraw(self) -> None:
        numbers = self.random.sample(range(61), 4)
        self.both("withdraw", [f"m{number}:0" for number in numbers])

    def purge(self) -> None:
        if self.random.randint(0, 9) == 0:
            self.both("purge")

    def the_audit_finds_nothing(self) -> None:
        """Counts match what is stored, and each owner stands where its account puts it."""
        # Not through `run`, which would repair the queue.
        self.lua.client.delete(audited_key(self.lua.name))
        self.lua.client.eval(source("audit"), 1, self.lua.name, self.now)
        assert not self.lua.client.hexists(self.lua.key("counters"), "mended")

    def numbers_agree(self) -> None:
        """Both have the same messages in the same places, and the same numbers of all owners."""
        told, meant = scripts_see(self.lua), reference_sees(self.model)
        assert told.keys() == meant.keys()
        for name, value in meant.items():
            assert are_close(told[name], value), (name, told[name], value)

    def each_message_is_in_one_place(self) -> None:
        model = self.model
        places = [*model.leases, *model.delayed]
        places += [mid for line in (*model.ready.values(), *model.parked.values()) for mid in line]
        assert sorted(places) == sorted(model.messages)
        waiting = sum(len(line) for line in (*model.ready.values(), *model.parked.values()))
        assert client.llen(self.lua.name) == waiting

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


def play(random: Random) -> None:
    """Act at random; after each act both engines have the same state, and it is sound."""
    sequence = Sequence(random)
    try:
        for _ in range(STEPS):
            sequence.act()
            sequence.numbers_agree()
            sequence.the_audit_finds_nothing()
            sequence.each_message_is_in_one_place()
            sequence.accounts_add_up()
            sequence.nothing_is_parked_for_ever()
    except AssertionError as error:
        raise AssertionError(f"after {sequence.acts}") from error
    finally:
        sequence.lua.erase()


@pytest.mark.parametrize(
    "times",
    [1, pytest.param(3, marks=pytest.mark.proof), pytest.param(30, marks=pytest.mark.chaos)],
)
def test_sequences(times: int) -> None:
    """Hypothesis chooses the acts, and shortens a sequence that fails."""
    chosen = given(st.randoms(use_true_random=False))(play)
    settings(
        max_examples=times * SEQUENCES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )(chosen)()


@pytest.mark.parametrize(
    "part", [*range(4), *(pytest.param(part, marks=pytest.mark.proof) for part in range(4, 10))]
)
def test_busy_sequences(part: int) -> None:
    """The same, where the random numbers are not hypothesis's: these queues are full and busy."""
    for seed in range(part, 3 * SEQUENCES, 10):
        play(Random(seed))


# As `lua/shared/accounts.lua` has them.
PACKED = [
    *("weight", "cap", "paused", "rate", "burst", "ready", "running", "expected"),
    *("ran", "ran_at", "virtual", "busy", "turn", "tat", "served", "finished"),
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
