"""fleet/worker/redis_silence.py: how long Redis has owed a worker an answer."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from fleet.transport import poller
from fleet.transport.poller import Poller
from fleet.worker import redis_silence
from fleet.worker.redis_silence import LOOK_SECONDS, STEP_SECONDS, RedisSilence

LOOKS = 7
"""Looks in a row: for longer than Redis may be silent."""


class Channel:
    """The attributes of a channel that say whether it asks."""

    def __init__(self) -> None:
        self._in_poll: object = object()
        self.active_queues = {"jobs"}
        self.qos = SimpleNamespace(can_consume=lambda: True)
        self.connection = SimpleNamespace(client=SimpleNamespace(alt=()))
        self.leases = SimpleNamespace(forget_server=lambda _holder: None)
        self.holder = object()


@dataclass
class Scene:
    """A worker with one consuming channel, and its renewals of leases."""

    now: float = 1_000.0
    renewed_at: float = 999.0
    connection: Any = None
    channel: Channel = field(default_factory=Channel)

    silence: RedisSilence = field(init=False)

    def __post_init__(self) -> None:
        self.poller = Poller()
        self.poller.add(self.channel)
        self.connection = SimpleNamespace(transport=SimpleNamespace(cycle=self.poller))

    def is_owed(self, *, since: float) -> bool:
        """As a renewal says it."""
        return self.renewed_at < since

    def pass_by(self, *happens: str, seconds: float = LOOK_SECONDS) -> None:
        """Let this happen, and then the next look come."""
        self.now += seconds - 0.1
        if "renewal" in happens:
            self.renewed_at = self.now
        if "answer" in happens:
            self.poller.answered()
        self.now += 0.1
        self.silence.look()


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    scene = Scene()
    monkeypatch.setattr(poller, "monotonic", lambda: scene.now)
    monkeypatch.setattr(redis_silence, "time", SimpleNamespace(monotonic=lambda: scene.now))
    scene.silence = RedisSilence(scene, scene)  # type: ignore[arg-type]
    return scene


def full(scene: Scene) -> None:
    scene.channel.qos.can_consume = lambda: False


def asks_nothing(scene: Scene) -> None:
    scene.channel._in_poll = None


def reconnects(scene: Scene) -> None:
    scene.connection = None


def another_transport(scene: Scene) -> None:
    scene.connection = SimpleNamespace(transport=SimpleNamespace())


@pytest.mark.parametrize(
    ("change", "happens", "is_silent"),
    [
        (None, ("answer", "renewal"), False),
        (None, (), True),
        # One connection works, and the other one does not.
        (None, ("renewal",), True),
        (None, ("answer",), True),
        # Nothing is asked for: renewals alone are answered.
        (full, ("renewal",), False),
        (full, (), True),
        (asks_nothing, ("renewal",), False),
        # The consumer is away, or another broker than Redis is used.
        (reconnects, ("renewal",), True),
        (another_transport, ("renewal",), False),
    ],
)
def test_only_an_answer_that_is_due_counts(
    scene: Scene, change: Any, happens: tuple[str, ...], is_silent: bool
) -> None:
    """To what the worker consumes with, and to its renewals: the longer silence of both."""
    if change:
        change(scene)
    for _ in range(LOOKS):
        scene.pass_by(*happens)
    assert scene.silence.seconds == pytest.approx(LOOKS * LOOK_SECONDS if is_silent else 0.0)
    scene.connection = SimpleNamespace(transport=SimpleNamespace(cycle=scene.poller))
    scene.pass_by("answer", "renewal")
    assert scene.silence.seconds == 0


def test_a_lost_connection_counts_until_it_is_used_again(scene: Scene) -> None:
    """Also while it rests between two tries, with nothing under way."""
    asks_nothing(scene)
    scene.poller.is_in_loop = True
    assert scene.poller.survives(ConnectionError("cut"))
    scene.pass_by("renewal")
    assert scene.silence.seconds == pytest.approx(LOOK_SECONDS)


def test_a_consumer_that_starts_anew_does_not_end_the_silence(scene: Scene) -> None:
    """Its connection is open, and its answers may be swallowed as before: until the first one."""
    for _ in range(LOOKS):
        scene.pass_by("renewal")
    asks_nothing(scene)
    scene.channel.active_queues = set()
    scene.pass_by("renewal")
    assert scene.silence.seconds == pytest.approx(LOOKS * LOOK_SECONDS)
    scene.pass_by("answer", "renewal")
    assert scene.silence.seconds == 0


def test_a_loop_that_a_task_blocks_is_no_silence_of_redis(scene: Scene) -> None:
    """The answer waits in the socket: a solo pool runs its task for an hour in the loop."""
    scene.pass_by("renewal", seconds=3_600)
    assert scene.silence.seconds == STEP_SECONDS
    scene.pass_by("answer", "renewal")
    assert scene.silence.seconds == 0
