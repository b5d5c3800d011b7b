"""The fair queue: one contract, played on the reference in Python and on the scripts."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from redis import Redis

from fleet.fairness.messages import Message, OwnerStats
from fleet.fairness.queue import FairQueue, Given
from tests.fleet.fair_worlds import LEASE, SECOND, LuaQueue, World, connected, group


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    with connected() as client:
        yield client


@pytest.fixture
def lua(redis: Redis) -> Iterator[World]:
    """Only the scripts: what the transport adds to the queue."""
    queue = LuaQueue(redis, f"fair-{uuid4().hex}")
    yield World(queue)
    queue.erase()


@pytest.fixture(params=["python", "lua"])
def world(request: pytest.FixtureRequest) -> World:
    if request.param == "python":
        return World(FairQueue())
    return request.getfixturevalue("lua")


# Shares ---------------------------------------------------------------------------------------


def test_equal_weights_get_equal_worker_time(world: World) -> None:
    """Two owners with equal weights share the workers' time, however large their backlogs."""
    world.publish("acme", 400, task="t")
    world.publish("globex", 200, task="t")
    received, started = world.serve(4, lambda _: 1.0, until=60)
    assert received["acme"] == pytest.approx(120, abs=4)
    assert received["globex"] == pytest.approx(120, abs=4)
    assert all(len(set(started[at : at + 3])) == 2 for at in range(100))


def test_worker_time_is_shared_by_weight(world: World) -> None:
    """Weights 1:2:4 get worker time 1:2:4, though run times differ by a factor of ten."""
    seconds = {"acme": 0.5, "globex": 5.0, "stranger": 1.0}
    for name, weight in (("acme", 1), ("globex", 2), ("stranger", 4)):
        world.owner(name, weight=weight)
        world.publish(name, 600, task=name)
    received, _ = world.serve(7, seconds.__getitem__, until=120)
    assert received["acme"] == pytest.approx(120, rel=0.08)
    assert received["globex"] == pytest.approx(240, rel=0.08)
    assert received["stranger"] == pytest.approx(480, rel=0.08)


def test_a_newcomer_does_not_wait_for_a_backlog(world: World) -> None:
    """A message published behind 3,000 of another owner is among the next two to start."""
    world.publish("acme", 3000, task="t")
    world.serve(4, lambda _: 0.1, until=2)
    [mid] = world.publish("globex", task="t")
    assert mid in world.ids(2)


def test_a_newcomer_is_not_behind_a_window_full_of_short_runs(world: World) -> None:
    """A window of runs that have not begun has no charged time: two equal owners get half each."""
    world.publish("acme", 1800, task="t")
    world.end(world.take()[0], seconds=0.001)
    window: list[Given] = []

    def ended(steps: int) -> list[str]:
        """Run two slots for `steps` times 25 ms, with a window of 200 ms beyond them."""
        names = []
        for _ in range(steps):
            window.extend(world.take(0, budget=0.2 - len(window) * 0.001, most=256))
            world.wait(0.025)
            batch = [window.pop(0) for _ in range(50)]
            runs = [(each.id, each.lease, SECOND // 1000) for each in batch]
            assert world.queue.done(world.now, "w1", runs) == 50
            names += [each.id.rsplit("-", 1)[0] for each in batch]
        return names

    assert set(ended(12)) == {"acme"}
    world.publish("globex", 900, task="t")
    share = ended(20).count("globex") / 1000
    assert share == pytest.approx(0.45, abs=0.1), "but for the window that was full when it came"


def test_a_newcomer_does_not_pay_for_what_others_were_charged_too_much(world: World) -> None:
    """No other owner pays back minutes that were charged for runs of a second."""
    world.publish("stranger", task="sync")
    world.end(world.take()[0], seconds=60)
    world.publish("acme", 100, task="sync")
    given = world.take(20)
    world.wait(1)
    for each in given:
        world.end(each, seconds=1)
    world.end(world.take()[0], seconds=1)
    mine = world.publish("globex", 3, task="sync")
    assert set(mine) <= set(world.ids(7))


def test_idling_earns_no_credit(world: World) -> None:
    """An owner that was idle for ten minutes gets its share again, and no compensation."""
    world.publish("globex", 1, task="t")
    world.publish("acme", 1000, task="t")
    world.serve(1, lambda _: 1.0, until=600)
    world.publish("globex", 100, task="t")
    _, started = world.serve(1, lambda _: 1.0, until=40)
    assert started.count("globex") == pytest.approx(20, abs=2)


def test_waiting_with_work_in_flight_earns_no_credit(world: World) -> None:
    """A run that began long ago is no time for which its owner waited."""
    world.publish("globex", 1, task="slow")
    [slow] = world.take(worker="w2")
    world.publish("acme", 500, task="t")
    for _ in range(60):
        world.serve(1, lambda _: 1.0, until=5)
        world.queue.renew(world.now, "w2")
    world.end(slow, seconds=300, worker="w2")
    world.publish("globex", 100, task="t")
    _, started = world.serve(1, lambda _: 1.0, until=40)
    assert started.count("globex") == pytest.approx(20, abs=2)


def test_a_long_run_is_paid_for_while_it_runs(world: World) -> None:
    """Long runs of an unknown task start in a few slots, and then in no more."""
    world.publish("globex", 300, task="unknown")
    world.publish("acme", 3000, task="t")
    received, started = world.serve(8, {"globex": 600.0, "acme": 0.5}.__getitem__, until=120)
    assert started.count("globex") <= 6
    assert received["acme"] >= 0.95 * 2 * 120


def test_debts_end_with_the_busy_period(world: World) -> None:
    """An owner that used an idle system alone owes nothing to later ones."""
    world.publish("acme", task="t")
    [given] = world.take()
    world.wait(100)
    world.end(given, seconds=100)
    world.publish("acme", 20, task="t")
    world.publish("globex", 20, task="t")
    _, started = world.serve(1, lambda _: 1.0, until=20)
    assert started.count("acme") == pytest.approx(10, abs=1)


def test_submissions_of_an_owner_share_its_part(world: World) -> None:
    """A small submission does not wait for its owner's large one; a stranger notices neither."""
    world.publish("acme", 500, submission="large", task="t")
    world.publish("globex", 100, task="t")
    world.serve(2, lambda _: 1.0, until=20)
    small = world.publish("acme", 3, submission="small", task="t")
    taken = [world.ids()[0] for _ in range(12)]
    assert set(small) <= set(taken)
    assert sum(mid.startswith("globex") for mid in taken) == 6


def test_submissions_share_by_worker_time(world: World) -> None:
    """A submission of long runs pays for them: its sister of short runs gets as much time."""
    world.publish("acme", 200, submission="long", task="long")
    world.publish("acme", 400, submission="short", task="short")
    seconds = {"long": 2.0, "short": 0.5}
    spent = dict.fromkeys(seconds, 0.0)
    for _ in range(100):
        [given] = world.take()
        kind = world.queue.find(given.id).submission
        world.wait(seconds[kind])
        world.end(given, seconds=seconds[kind])
        spent[kind] += seconds[kind]
    assert spent["long"] == pytest.approx(spent["short"], rel=0.1)


# Order ----------------------------------------------------------------------------------------


def test_a_higher_priority_goes_first_until_the_other_has_waited(world: World) -> None:
    """A step of priority is worth a minute of waiting, so every priority is served."""
    [low] = world.publish("acme", priority=3)
    world.wait(30)
    [high] = world.publish("acme", priority=4)
    world.wait(31)
    [late] = world.publish("acme", priority=4)
    assert world.ids(3) == [high, low, late]


def test_the_window_is_slots_and_a_budget_of_known_short_runs(world: World) -> None:
    """Beyond its free slots a worker gets only runs known to be short, up to a budget."""
    world.publish("stranger", task="t")
    world.end(world.take()[0], seconds=0.25)
    world.publish("acme", 20, task="t")
    assert len(world.take(2, budget=1.0, most=20)) == 2 + 4
    assert len(world.take(2, budget=1.0, most=3, worker="w2")) == 3
    world.publish("globex", 20, task="unknown")
    assert len(world.take(1, budget=60, most=20, worker="w3")) < 20


def test_an_unknown_run_is_charged_as_the_average(world: World) -> None:
    """A task without a history is expected to take the average of the queue's runs."""
    world.publish("stranger", task="t")
    world.end(world.take()[0], seconds=40)
    world.publish("acme", 2, task="new")
    [given] = world.take()
    assert given.expected is None
    assert world.stats("acme").virtual == pytest.approx(
        world.stats("stranger").virtual, abs=80 * SECOND
    )
    world.end(given, seconds=2)
    [given] = world.take()
    assert given.expected == 2 * SECOND


# Limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cap", [1, 3])
def test_a_cap_is_kept_and_filled(world: World, cap: int) -> None:
    """Never more than the cap run; the next starts when one has finished, before its ack."""
    world.owner("acme", cap=cap)
    world.publish("acme", 10)
    given = world.take(10)
    assert len(given) == cap
    assert all(each.is_urgent for each in given)
    assert world.ids(worker="w2") == []
    assert world.finish(given[0], seconds=1) == 1
    assert len(world.take(10, worker="w2")) == 1


def test_a_new_cap_acts_on_the_backlog(world: World) -> None:
    """A cap that is raised frees messages that wait; one that is lowered stops the next."""
    world.owner("acme", cap=1)
    world.publish("acme", 10)
    [first] = world.take(10)
    world.owner("acme", cap=3)
    more = world.take(10)
    assert len(more) == 2
    world.owner("acme", cap=2)
    world.end(first)
    assert world.take(10) == []
    world.end(more[0])
    assert len(world.take(10)) == 1


def test_a_pause_holds_the_backlog_and_a_resume_frees_it(world: World) -> None:
    """No message of a paused owner starts; those that it publishes are kept."""
    world.publish("acme", 2)
    world.owner("acme", is_paused=True)
    world.publish("acme", 2)
    assert world.take(10) == []
    world.owner("acme")
    assert len(world.take(10)) == 4


def test_a_rate_lets_a_burst_through_and_then_one_at_a_time(world: World) -> None:
    """Two starts a second with a burst of three: three at once, then one each half second."""
    world.owner("acme", rate=2, burst=3)
    world.publish("acme", 20)
    assert len(world.take(10)) == 3
    world.wait(0.4)
    assert world.take(10) == []
    world.wait(0.1)
    assert len(world.take(10)) == 1
    world.wait(60)
    assert len(world.take(10)) == 3


def test_a_drop_brings_no_more_starts_than_there_were(world: World) -> None:
    """Not for a start that was paid for long ago, nor after the rate was removed."""
    world.owner("acme", rate=1, burst=2)
    world.publish("acme", 9)
    first, second = world.take(9)
    world.wait(60)
    world.ack(first)
    assert len(world.take(9)) == 2
    world.owner("acme")
    world.ack(second)
    world.owner("acme", rate=1)
    assert len(world.take(9)) == 1


def test_a_new_rate_counts_at_once(world: World) -> None:
    """An owner that waited by a slow rate waits by the new one, or not at all."""
    world.owner("acme", rate=1 / 3600)
    world.publish("acme", 5)
    assert len(world.take(5)) == 1
    world.owner("acme", rate=10)
    assert world.take(5) == []
    world.wait(0.1)
    assert len(world.take(5)) == 1
    world.owner("acme")
    assert len(world.take(5)) == 3


# Locks ----------------------------------------------------------------------------------------


def test_a_lock_is_held_by_one_at_a_time(world: World) -> None:
    """Messages under one lock run one after the other, in order; others overtake them."""
    first, second, third = world.publish("acme", 3, lock="acme/db")
    [free] = world.publish("acme")
    given = world.take(10)
    assert [each.id for each in given] == [first, free]
    assert given[0].is_urgent
    assert world.state(second) == world.state(third) == "parked"
    world.finish(given[0])
    [given] = world.take(10)
    assert given.id == second
    world.end(given)
    assert world.ids(10) == [third]


def test_what_is_published_behind_a_taken_lock_is_parked(world: World) -> None:
    """It is not looked at before the lock is free."""
    world.publish("acme", lock="db")
    [holder] = world.take()
    [mid] = world.publish("globex", lock="db")
    assert world.state(mid) == "parked"
    assert world.take() == []
    world.end(holder)
    assert world.ids() == [mid]


def test_a_paused_owner_keeps_no_stranger_from_a_lock(world: World) -> None:
    """A free lock goes to an owner that may run, though another one was first in line."""
    world.publish("stranger", lock="db")
    [holder] = world.take()
    world.publish("acme", 2, lock="db")
    [mine] = world.publish("globex", lock="db")
    world.owner("acme", is_paused=True)
    world.end(holder)
    assert world.ids() == [mine]


def test_an_owner_at_its_cap_keeps_no_stranger_from_a_lock(world: World) -> None:
    """Nor does one that reaches its cap after it was given the lock."""
    world.owner("acme", cap=1)
    world.publish("stranger", lock="db")
    [holder] = world.take()
    world.publish("acme", lock="db")
    world.publish("acme", priority=9)
    [mine] = world.publish("globex", lock="db")
    world.end(holder)
    assert mine in world.ids(2)


@pytest.mark.parametrize("gone_by", ["withdrawal", "deadline"])
def test_who_is_let_to_a_lock_and_goes_lets_the_next_one(world: World, gone_by: str) -> None:
    """No message stays parked behind a free lock."""
    world.publish("acme", lock="db")
    [holder] = world.take()
    [first] = world.publish("acme", lock="db", deadline=60)
    [second] = world.publish("acme", lock="db")
    world.end(holder)
    if gone_by == "withdrawal":
        assert world.queue.withdraw(world.now, [first]) == 1
    else:
        world.wait(61)
    assert world.ids() == [second]


# Time -----------------------------------------------------------------------------------------


def test_what_has_waited_before_goes_to_its_old_place(world: World) -> None:
    """Published anew under another number, it stands where it would if it had been there."""
    early = world.publish("acme", 2)
    world.wait(10)
    late = world.publish("acme", 2)
    world.wait(10)
    again = world.publish("acme", delay=-15)
    assert world.ids(5) == [*early, *again, *late]


def test_a_delayed_message_waits_for_its_time(world: World) -> None:
    """It is taken when it is due, and not before."""
    [mid] = world.publish("acme", delay=10)
    assert world.state(mid) == "delayed"
    world.wait(9.9)
    assert world.take() == []
    world.wait(0.1)
    assert world.ids() == [mid]


def test_a_message_past_its_deadline_is_diverted(world: World) -> None:
    """Its id is reported once, it costs its owner nothing, and the next one has its place."""
    world.owner("acme", rate=1)
    late = world.publish("acme", 3, deadline=5)
    world.wait(5)
    taken = world.taken(3)
    assert (taken.diverted, taken.messages) == (late, [])
    assert world.stats("acme") == OwnerStats(0, 0, 0, 0, 0.0, False, None)
    [next_late] = world.publish("acme", deadline=5)
    [fine] = world.publish("acme")
    world.wait(5)
    taken = world.taken()
    assert (taken.diverted, [given.id for given in taken.messages]) == ([next_late], [fine])
    assert world.state(next_late) == "unknown"


# Leases ---------------------------------------------------------------------------------------


def test_what_a_dead_worker_holds_goes_back_to_the_front(world: World) -> None:
    """After a lease without renewal a worker loses its messages, in their order."""
    ids = world.publish("acme", 5)
    world.take(3, worker="dead")
    world.wait(20)
    assert world.ids(1) == ids[3:4]
    world.wait(LEASE / SECOND - 20 + 0.001)
    assert world.ids(5) == [*ids[:3], ids[4]]


def test_a_worker_that_renews_keeps_what_it_holds(world: World) -> None:
    """A run of any length is handed out once while its worker lives."""
    world.publish("acme")
    world.take(worker="w2")
    for _ in range(10):
        world.wait(20)
        assert world.queue.renew(world.now, "w2") == 1
        assert world.take() == []


def test_a_lost_reply_loses_no_message(world: World) -> None:
    """Messages leased in a take without a reply come with the next take; confirmed ones stay."""
    ids = world.publish("acme", 4)
    held = world.ids(1)
    world.take(2, is_reply_lost=True)
    assert world.ids(3) == ids[1:]
    assert held == ids[:1]
    # An empty take changes nothing, whether its reply arrives or not.
    assert world.take(5, is_reply_lost=True) == world.take(5) == []
    assert world.stats("acme").running == 4


def test_the_same_attempt_published_twice_is_one(world: World) -> None:
    """Whether it is ready, delayed, parked or leased at that time."""
    message = Message("a:1", "acme", lock="db")
    assert world.queue.enqueue(world.now, [message, message]) == 1
    [given] = world.take()
    parked, delayed = Message("b:1", "acme", lock="db"), Message("c:1", "acme", delay=SECOND)
    assert world.queue.enqueue(world.now, [parked, delayed]) == 2
    assert world.queue.enqueue(world.now, [message, parked, delayed]) == 0
    world.end(given)
    assert world.ids(5) == ["b:1"]


def test_what_is_published_while_its_worker_drops_it_is_ready_again(world: World) -> None:
    """Unless it has run: then the second publication is dropped."""
    dropped, ran = Message("a:1", "acme"), Message("b:1", "acme")
    world.queue.enqueue(world.now, [dropped, ran])
    first, second = world.take(2)
    world.queue.enqueue(world.now, [dropped, ran])
    world.finish(second, seconds=1)
    world.ack(first)
    world.ack(second)
    assert world.ids(5) == ["a:1"]


def test_a_new_attempt_is_a_new_message(world: World) -> None:
    """A retry that is published while the first attempt is still leased is not swallowed."""
    world.queue.enqueue(world.now, [Message("a:0", "acme")])
    [first] = world.take()
    assert world.queue.enqueue(world.now, [Message("a:1", "acme")]) == 1
    world.end(first)
    assert world.ids() == ["a:1"]


def test_an_old_lease_number_has_no_say(world: World) -> None:
    """A worker that lost the lease can neither finish, ack nor give back the message."""
    world.publish("acme")
    [old] = world.take()
    world.give_back(old)
    [new] = world.take(worker="w2")
    assert world.finish(old, seconds=9) == world.ack(old) == world.give_back(old) == 0
    assert world.finish(old, worker="w2") == 0
    assert world.stats("acme").served == 0
    world.end(new, seconds=1, worker="w2")
    assert world.stats("acme").served == SECOND


def test_a_finish_counts_once(world: World) -> None:
    """Twice in one call or in two, it is charged once; the same holds for an ack."""
    world.publish("acme")
    [given] = world.take()
    run = (given.id, given.lease, SECOND)
    assert world.queue.finish(world.now, "w1", [run, run]) == 1
    assert world.queue.finish(world.now, "w1", [run]) == 0
    stats = world.stats("acme")
    assert (stats.served, stats.finished, stats.running) == (SECOND, 1, 0)
    lease = (given.id, given.lease)
    assert world.queue.ack(world.now, "w1", [lease, lease]) == 1
    assert world.ack(given) == 0


def test_what_has_finished_and_was_not_acked_comes_again(world: World) -> None:
    """It has been charged; but only the ack removes it."""
    [mid] = world.publish("acme", lock="db")
    [given] = world.take(worker="dead")
    world.finish(given, seconds=1, worker="dead")
    world.wait(LEASE / SECOND + 1)
    assert world.ids() == [mid]
    stats = world.stats("acme")
    assert (stats.running, stats.served) == (1, SECOND)


def test_what_is_given_back_is_next(world: World) -> None:
    """It goes to its old place, which is the front; with a delay it waits."""
    first, second = world.publish("acme", 2)
    [given] = world.take()
    world.give_back(given)
    [given] = world.take()
    assert given.id == first
    world.give_back(given, delay=5)
    assert world.state(first) == "delayed"
    assert world.ids(2) == [second]
    world.wait(5)
    assert world.ids(2) == [first]


def test_a_worker_that_is_back_holds_what_it_names(world: World) -> None:
    """A server that took over knows neither the last takes nor each end: none of these is lost."""
    world.owner("acme", cap=2)
    world.publish("acme", 3)
    one, other = world.take(3)
    assert world.queue.keep(world.now, "w1", [(one.id, one.lease), (other.id, other.lease)]) == 0
    world.confirmed["w1"] = 0
    assert world.ids(3) == []
    world.finish(other)
    assert world.queue.keep(world.now, "w1", [(one.id, one.lease), (other.id, 99)]) == 1
    assert world.ids(3, worker="w2") == [other.id]
    assert world.ack(one) == 1


def test_a_worker_that_leaves_holds_nothing(world: World) -> None:
    """Its messages go back, up to `limit` a call."""
    world.publish("acme", 5)
    world.take(5)
    assert world.queue.leave(world.now, "w1", limit=3) == 3
    assert world.queue.leave(world.now, "w1", limit=3) == 2
    assert len(world.take(5, worker="w2")) == 5


# In and out -----------------------------------------------------------------------------------


def test_a_withdrawn_message_does_not_start(world: World) -> None:
    """Waiting messages of any state are removed; a leased one stays."""
    [leased] = world.publish("acme", lock="db")
    world.take()
    waiting = [
        *world.publish("acme", lock="db"),
        *world.publish("acme", delay=5),
        *world.publish("acme"),
    ]
    assert world.queue.withdraw(world.now, [leased, *waiting, "nobody:0"]) == 3
    world.wait(10)
    assert world.take(5) == []
    assert world.state(leased) == "leased"


def test_a_purge_leaves_what_is_leased(world: World) -> None:
    """All waiting messages go; leased ones are finished as usual."""
    world.publish("acme", 10, lock="db")
    world.publish("globex", 10)
    world.publish("globex", 10, delay=9)
    [first, second] = world.take(2)
    assert world.queue.purge(world.now) == 28
    world.end(first)
    world.end(second)
    world.wait(10)
    assert world.take(5) == []


def test_a_message_is_found_with_what_stands_before_it(world: World) -> None:
    """Place in its submission, owners before its own, and when it is due."""
    ids = world.publish("acme", 3, submission="s")
    world.publish("globex")
    [later] = world.publish("globex", delay=7)
    assert world.queue.find(ids[2])[:5] == ("ready", "acme", "s", 2, 0)
    assert world.queue.find(later).due == world.now + 7 * SECOND
    assert world.queue.find("nobody:0").state == "unknown"


# What only the scripts have -------------------------------------------------------------------


def length(world: World) -> int:
    return world.queue.client.llen(world.queue.name)


def test_the_length_of_the_list_is_the_backlog(lua: World) -> None:
    """LLEN counts ready and parked messages, neither leased nor delayed ones."""
    lua.publish("acme", 5, lock="db")
    lua.publish("globex", 2, delay=5)
    assert length(lua) == 5
    [given] = lua.take()
    assert length(lua) == 4
    lua.give_back(given)
    assert length(lua) == 5
    lua.wait(5)
    lua.take(10)
    assert length(lua) == 4
    lua.queue.purge(lua.now)
    assert length(lua) == 0


def has_foreign(world: World) -> bool:
    """Say whether a take reports messages of stock clients."""
    return bool(world.queue.run("take", world.now, "w2", LEASE, 0, 1, 0, 1)[2])


def test_a_foreign_message_is_told_and_adopted_once(lua: World) -> None:
    """A stock client's message is queued under its owner, and is not popped as a placeholder."""
    lua.publish("acme")
    lua.queue.client.lpush(lua.queue.name, b"{foreign}")
    lua.take()
    assert has_foreign(lua)
    facts = (lua.queue.name, b"{foreign}", *group(Message("f:0", "globex", body=b"{foreign}")))
    assert lua.queue.run("adopt", lua.now, *facts) == 1
    assert lua.queue.run("adopt", lua.now, *facts) == 0
    [given] = lua.take()
    assert (given.id, given.body) == ("f:0", b"{foreign}")
    assert length(lua) == 0
    assert not has_foreign(lua)
    # A stock client pushes priorities to lists of their own.
    key = f"{lua.queue.name}\x06\x163"
    lua.queue.client.lpush(key, b"{foreign}")
    is_told = has_foreign(lua)
    lua.queue.client.delete(key)
    assert is_told


def test_bad_bytes_are_put_aside_once(lua: World) -> None:
    """From the plain list or from a lease: quarantined once, and the queue continues."""
    lua.queue.client.lpush(lua.queue.name, b"bad")
    bad = ("no JSON", "list", lua.queue.name, b"bad")
    assert lua.queue.run("quarantine", lua.now, *bad) == 1
    assert lua.queue.run("quarantine", lua.now, *bad) == 0
    lua.owner("acme", cap=1)
    lua.publish("acme", 2)
    [given] = lua.take()
    held = ("no task", "lease", "w1", given.id, given.lease, b"bad")
    assert lua.queue.run("quarantine", lua.now, *held) == 1
    assert lua.queue.run("quarantine", lua.now, *held) == 0
    assert lua.queue.client.llen(lua.queue.key("quarantine")) == 2
    assert len(lua.take()) == 1


def tokens(world: World) -> int:
    return world.queue.client.llen(world.queue.key("wake"))


def wake_up(world: World) -> None:
    assert world.queue.client.lpop(world.queue.key("wake")) == b"1"


def sleep(world: World, *workers: str) -> list[int]:
    """Have workers find nothing; return for how long (ms) each may sleep."""
    return [
        world.queue.run("take", world.now, worker, LEASE, world.confirmed.get(worker, 0), 1, 0, 9)[
            1
        ]
        for worker in workers
    ]


def test_one_of_those_who_sleep_keeps_watch(lua: World) -> None:
    """One wakes for the next due time, the others sleep until they are woken.

    When its time has passed, the next worker that finds nothing takes the watch.
    """
    lua.publish("acme", delay=0.4)
    assert sleep(lua, "w1", "w2", "w3") == [400, 5000, 5000]
    lua.wait(0.4)
    assert lua.ids(worker="w1", most=9)
    lua.publish("acme", delay=2)
    assert sleep(lua, "w1", "w2") == [2000, 5000]
    lua.wait(3.5)
    assert lua.ids(worker="w3")
    lua.publish("acme", delay=2)
    assert sleep(lua, "w2") == [2000]


def test_where_stock_clients_publish_somebody_looks_each_second(lua: World) -> None:
    """Stock clients wake no worker: for ten minutes after one, a worker looks each second."""
    client, queue = lua.queue.client, lua.queue.name
    assert sleep(lua, "w1", "w2") == [5000, 5000]
    client.lpush(queue, "a stock client's")
    assert sleep(lua, "w1", "w2") == [1000, 5000]
    client.lpop(queue)
    lua.wait(599)
    assert sleep(lua, "w1") == [1000]
    lua.wait(2)
    assert sleep(lua, "w1") == [5000]


def test_a_watcher_that_has_work_hands_the_watch_on(lua: World) -> None:
    """The worker that is woken in its place takes the watch."""
    sleep(lua, "w1", "w2")
    lua.publish("acme")
    wake_up(lua)
    lua.ids(worker="w1")
    wake_up(lua)
    lua.publish("acme", delay=1)
    assert sleep(lua, "w2") == [1000]


def test_a_token_for_each_message_and_no_more_than_sleepers(lua: World) -> None:
    """Two messages wake two of three; a hundred wake all three."""
    sleep(lua, "w1", "w2", "w3")
    lua.publish("acme", 2)
    assert tokens(lua) == 2
    lua.publish("acme", 100)
    assert tokens(lua) == 3


def test_who_takes_and_leaves_some_wakes_the_next(lua: World) -> None:
    """A hundred that fall due at once are not left to the one that was awake."""
    lua.publish("acme", 100, delay=0.5)
    sleep(lua, "w1", "w2", "w3")
    lua.wait(0.5)
    for worker in ("w1", "w2", "w3"):
        lua.ids(worker=worker)
        if worker != "w3":
            wake_up(lua)
    assert tokens(lua) == 0


def free_the_lock(world: World, given: Given) -> None:
    world.owner("acme")
    world.finish(given)


FREED_BY: dict[str, Callable[[World, Given], Any]] = {
    "resume": lambda world, _: world.owner("globex"),
    "cap": lambda world, _: world.owner("stranger", cap=2),
    "finish": lambda world, given: world.finish(given),
    "lock": free_the_lock,
    "give back": lambda world, given: world.give_back(given),
    "leave": lambda world, _: world.queue.leave(world.now, "w1", limit=10),
}


@pytest.mark.parametrize("freed_by", FREED_BY)
def test_what_makes_messages_takeable_wakes_sleepers(lua: World, freed_by: str) -> None:
    """No worker sleeps while there is a message for it."""
    lua.owner("stranger", cap=1)
    lua.publish("stranger", 2)
    lua.take(worker="w3")
    lua.owner("acme", cap=1)
    lua.owner("globex", is_paused=True)
    lua.publish("globex")
    lua.publish("acme", 2, lock="db")
    [given] = lua.take()
    sleep(lua, "w2")
    assert tokens(lua) == 0
    FREED_BY[freed_by](lua, given)
    assert tokens(lua) == 1


def test_something_due_earlier_than_the_watch_wakes_somebody(lua: World) -> None:
    """A message that is due before the watcher looks again is not late."""
    sleep(lua, "w1", "w2")
    lua.publish("acme", delay=5)
    assert tokens(lua) == 0
    lua.publish("acme", delay=0.2)
    assert tokens(lua) == 1
    wake_up(lua)
    assert sleep(lua, "w2") == [200]


def test_a_rate_that_lets_the_next_one_through_wakes_somebody(lua: World) -> None:
    """A busy worker does not look again in time, so a sleeper takes the watch."""
    lua.owner("acme", rate=5)
    lua.publish("acme", 5)
    lua.ids(worker="w1")
    assert sleep(lua, "w2") == [200]
    lua.wait(0.2)
    assert len(lua.ids(worker="w3")) == 1
    assert tokens(lua) == 1


def test_a_drained_queue_leaves_no_messages_behind(lua: World) -> None:
    """Facts about owners and tasks remain; tokens expire."""
    lua.publish("acme", 40, submission="s", lock="db", task="t")
    lua.publish("globex", 40, task="t")
    while given := lua.take(3):
        for each in given:
            lua.end(each, seconds=0.1)
    lua.queue.leave(lua.now, "w1", limit=10)
    assert lua.queue.keys() - {"wake"} == {
        "state", "counters", "owners", "accounts", "expected",
    }  # fmt: skip
