"""Several beats: one sends, another takes over, and each due time is sent once."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from fleet.beat.due import send_id
from fleet.beat.scheduler import LEASE_SECONDS, RENEW_SECONDS
from tests.flows.beats import ANCHOR, Beats, beats
from tests.waiting import wait_for

TAKEN_OVER_SECONDS = 60.0


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beats]:
    with beats(tmp_path_factory.mktemp("beats")) as made:
        yield made


@pytest.fixture(autouse=True)
def _each_due_time_once(world: Beats, request: pytest.FixtureRequest) -> Iterator[None]:
    """After every scene: each id is that of a due time, and was sent once.

    On this stock queue twice, if a beat or PostgreSQL died between a publish and its note.
    """
    before = world.doubled("second")
    yield
    assert set(world.ear.counts("second")) <= world.nominal_ids()
    may_hit = "stop" not in request.node.name
    assert len(world.doubled("second") - before) <= may_hit


@pytest.mark.proof  # servers of its own, for what no promise says
def test_a_beat_waits_for_postgresql(world: Beats) -> None:
    """At its boot, and when it is killed later: the beat stays, and sends when it is back."""
    postgres = world.servers.postgres
    postgres.stop()
    alone = world.start()
    wait_for(lambda: "waits for PostgreSQL" in alone.log.read_text(), what="its word")
    postgres.start()
    world.hear("second")
    postgres.restart()
    world.hear("second")
    assert alone.is_alive, alone.log_end()


def test_a_killed_leader_is_followed(world: Beats) -> None:
    """Within ten seconds, by one that stood by: a lease, a look for it, and time to spare."""
    assert LEASE_SECONDS + RENEW_SECONDS + 1.0 < TAKEN_OVER_SECONDS
    leader, _ = world.two()
    world.lease_wears_on()
    leader.kill()
    assert world.hear("second") < TAKEN_OVER_SECONDS


def test_a_leader_that_is_asked_to_stop_gives_up_its_lease(world: Beats) -> None:
    """The other one does not wait for the lease's end."""
    leader, other = world.two()
    leader.stop()
    in_force = world.servers.sql("SELECT holder FROM jobs_leader WHERE until > clock_timestamp()")
    assert all(int(str(holder).split(":")[1]) != leader.pid for (holder,) in in_force)
    wait_for(lambda: world.leader() is other, what="the other one to lead")
    world.hear("second")


def test_what_redis_did_not_take_is_sent_again(world: Beats) -> None:
    """A daily entry whose publish failed is sent when Redis is back; the beat stays."""
    due_at = datetime.now(tz=ANCHOR.tzinfo) - timedelta(hours=4)
    with world.only("late", due_at=due_at):
        world.servers.redis.kill()
        alone = world.start()
        wait_for(lambda: alone.log.read_text().count("waits for the broker") > 1, what="its word")
        world.servers.redis.start()
        wait_for(lambda: world.row("late") == (False, 0), what="the entry to be off")
        # Its own connection was lost, too, and may come back after the beat's.
        wait_for(lambda: world.ear.of("late"), what="the message")
        assert world.ear.counts("late") == {send_id("late", due_at): 1}
        assert alone.is_alive, alone.log_end()


@pytest.mark.parametrize(("name", "copies"), [("stock", 2), ("fair", 1)])
def test_a_beat_dies_before_and_after_a_publish(world: Beats, name: str, copies: int) -> None:
    """The next leader sends it under the same id; what is sent has run once, and is off then.

    A stock queue has it twice after a death between publish and note, and only then.
    """
    due_at = datetime.now(tz=ANCHOR.tzinfo) - timedelta(hours=3)
    with world.only(name, due_at=due_at):
        for point in ("beat.after_note:1", "beat.after_publish:1"):
            world.end_at(point)
            world.end_lease()
        world.start()
        wait_for(lambda: world.row(name) == (False, 0), what="the entry to be off")
        if name == "fair":
            assert world.servers.client().llen("jobs") == copies
        else:
            assert world.ear.counts(name)[send_id(name, due_at)] == copies
