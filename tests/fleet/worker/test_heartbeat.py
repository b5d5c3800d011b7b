"""fleet/worker/heartbeat.py: silent when the worker hangs, and only then."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

import pytest

from fleet import Node, Orders
from fleet.worker import heartbeat
from fleet.worker.heartbeat import Heartbeat
from jobs.wiring import application
from tests.waiting import wait_for

LEASE = 1.0
NODE = Node(uuid4(), "w1@here", 1, "prefork", 1, ["jobs"])


@dataclass
class Beats:
    """A heartbeat with short times, and when it has beaten."""

    at: list[float] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    fails: list[Exception] = field(default_factory=list)
    closed_count: int = 0
    is_cut_off: bool = False

    def __post_init__(self) -> None:
        self.heart = Heartbeat(
            replace(
                application(),
                beat=self._beat,
                close=self._close,
                heartbeat_seconds=0.02,
                lease_seconds=LEASE,
            ),
            lambda: NODE,
            held=lambda: ["a", "b"],
            follow=lambda orders: self.cancelled.extend(orders.cancel),
            watch_loop=True,
        )

    def more(self) -> None:
        """Wait for two more beats: one may be under way."""
        wanted = len(self.at) + 2
        wait_for(lambda: len(self.at) >= wanted, seconds=5, what="more beats")

    def _beat(self, _node: Node, held: Sequence[str]) -> Orders:
        if self.fails:
            raise self.fails.pop()
        self.at.append(time.monotonic())
        return Orders(held[:1], is_cut_off=self.is_cut_off)

    def _close(self) -> None:
        self.closed_count += 1


@pytest.fixture
def beats() -> Iterator[Beats]:
    beats = Beats()
    beats.heart.start()
    beats.more()
    yield beats
    beats.heart.stop()
    beats.heart.join(100)


def test_a_worker_that_boots_for_long_goes_on_beating(beats: Beats) -> None:
    """Its loop does not turn yet. Without beats, its first runs were taken for lost."""
    wait_for(lambda: beats.at[-1] - beats.at[0] > 3 * LEASE, what="beats for longer than a lease")


def test_a_loop_that_stands_still_silences_it(beats: Beats) -> None:
    """After a lease, and until the loop turns again."""
    beats.heart.loop_turns()
    beats.at.clear()
    beats.more()
    wait_for(lambda: time.monotonic() - beats.at[-1] > LEASE, what="silence")
    assert beats.at[-1] - beats.at[0] < 2 * LEASE
    beats.heart.loop_turns()
    beats.more()


def test_the_health_check_sees_a_loop_that_stands_still(
    beats: Beats, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And not a database that is away: a restart of the worker would not bring it back."""
    alive = tmp_path / "alive"
    monkeypatch.setenv("FAIRSHIFT_ALIVE_FILE", str(alive))
    beats.fails.append(OSError("away"))
    monkeypatch.setattr(heartbeat, "RETRY_SECONDS", 0.02)
    wait_for(alive.exists, what="the file")
    beats.heart.loop_turns()
    wait_for(lambda: time.monotonic() - beats.at[-1] > LEASE, what="silence")
    alive.unlink()
    wait_for(lambda: time.monotonic() - beats.at[-1] > 2 * LEASE, what="more of it")
    assert not alive.exists()


def test_the_health_check_sees_a_worker_that_redis_does_not_answer(
    beats: Beats, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """While it answers others; and no more once its database is away, which knows this."""
    alive = tmp_path / "alive"
    monkeypatch.setattr(heartbeat, "RETRY_SECONDS", 0.02)
    beats.is_cut_off = True
    beats.more()
    monkeypatch.setenv("FAIRSHIFT_ALIVE_FILE", str(alive))
    beats.more()
    assert not alive.exists()
    beats.fails.append(OSError("away"))
    wait_for(alive.exists, what="the file")


def test_a_database_that_is_away_is_asked_again(beats: Beats) -> None:
    """On a new connection."""
    beats.fails.append(OSError("away"))
    beats.more()
    assert beats.closed_count == 1


@pytest.mark.parametrize("refusals", [2, 99])
def test_a_worker_that_boots_waits_for_its_database(
    monkeypatch: pytest.MonkeyPatch, refusals: int
) -> None:
    """After a crash it refuses connections for a while; one that stays away ends the boot."""
    monkeypatch.setattr(heartbeat, "RETRY_SECONDS", 0.02)
    monkeypatch.setattr(heartbeat, "FIRST_SECONDS", 0.5)
    beats = Beats(fails=[OSError("the database system is starting up")] * refusals)
    if refusals == 2:
        beats.heart.beat_first()
        assert (len(beats.at), beats.closed_count) == (1, 2)
    else:
        with pytest.raises(OSError, match="starting up"):
            beats.heart.beat_first()
        assert not beats.at


def test_the_lease_ends_a_lease_after_the_last_beat_that_was_stored(beats: Beats) -> None:
    """Counted from before the statement, whose stamp is later; a failed beat renews nothing."""
    beats.more()
    begun = beats.at[-2]
    assert begun - LEASE < beats.heart.lease_ends - LEASE <= beats.at[-1]
    beats.fails = [OSError("cut")] * 1_000_000
    wait_for(lambda: beats.closed_count, what="a beat that fails")
    ends = beats.heart.lease_ends
    assert ends <= beats.at[-1] + LEASE
    failed = beats.closed_count
    wait_for(lambda: beats.closed_count > failed, what="another one that fails")
    assert beats.heart.lease_ends == ends
