"""fleet/transport/sentinel.py: a Sentinel whose machine is lost is waited for once."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from threading import Thread

import pytest
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import MasterNotFoundError, Sentinel

from fleet.transport.sentinel import Address, discover_master
from tests.waiting import wait_for

STATE = {"name": "main", "ip": "10.0.0.9", "port": "6379", "flags": "master", "num-slaves": "0"}
STATE |= {"num-other-sentinels": "2", "quorum": "2"}
MASTER = ("10.0.0.9", 6379)


class Peer:
    """Listens as a Sentinel; it answers with one master, or not at all."""

    def __init__(self) -> None:
        self.is_lost = False
        self.asked_count = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address: Address = self._server.getsockname()
        Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        while given := connection.recv(4096):
            if b"MASTERS" in given:
                self.asked_count += 1
                if not self.is_lost:
                    connection.sendall(b"*1\r\n" + _array(STATE))
            else:
                connection.sendall(b"+OK\r\n" * given.count(b"CLIENT\r\n"))


def _array(facts: dict[str, str]) -> bytes:
    words = [word.encode() for item in facts.items() for word in item]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


@pytest.fixture
def peers() -> Iterator[list[Peer]]:
    """Three Sentinels."""
    with ExitStack() as ending:
        peers = [Peer() for _ in range(3)]
        for peer in peers:
            ending.callback(peer.close)
        yield peers


def sentinel_of(peers: list[Peer]) -> Sentinel:
    """Return a new pool's Sentinels, in the order of the URL."""
    given = {"socket_timeout": 1.0, "retry": Retry(NoBackoff(), 0), "protocol": 2}
    return Sentinel([peer.address for peer in peers], sentinel_kwargs=given)


def asked(peers: list[Peer]) -> list[int]:
    return [peer.asked_count for peer in peers]


def test_a_lost_sentinel_is_waited_for_once_in_a_process(peers: list[Peer]) -> None:
    """New pools ask the one that has answered, and so do those from before the loss."""
    before = sentinel_of(peers)
    assert discover_master(before, "main") == MASTER
    peers[0].is_lost = True
    for _ in range(3):
        assert discover_master(sentinel_of(peers), "main") == MASTER
    assert discover_master(before, "main") == MASTER
    assert asked(peers) == [2, 4, 0]


def test_without_any_sentinel_it_is_an_error(peers: list[Peer]) -> None:
    """Of redis-py, which names each of them."""
    for peer in peers:
        peer.is_lost = True
    with pytest.raises(MasterNotFoundError):
        discover_master(sentinel_of(peers), "main")
    wait_for(lambda: asked(peers) == [1, 1, 1], what="each to be asked")
