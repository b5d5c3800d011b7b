"""A TCP proxy between a server and its clients that loses, delays and cuts replies on request."""

from __future__ import annotations

import asyncio
import ctypes
import random
import socket
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

CHUNK: Final = 1 << 16
END_SECONDS: Final = 100.0
CLONE_NEWNET: Final = 0x40000000


@dataclass(frozen=True)
class Faults:
    """What happens to replies: what a server sends at once is one. Probabilities are per reply.

    A connection ends with its lost reply: it is cut, or hangs until the client closes it.
    """

    lost: float = 0.0
    """The probability that a reply is lost; of these, every second one on average hangs."""
    cut: float = 0.0
    """The probability that the connection is cut behind a reply."""
    delay_seconds: float = 0.0
    """The delay of each reply."""
    jitter_seconds: float = 0.0
    """By how much a delay differs from that at most, either way."""
    command: bytes = b""
    """The only command whose replies are lost, such as PUBLISH; empty for all."""
    hangs: bool | None = None
    """Whether every lost reply hangs, or none; None for chance."""
    replaced: tuple[bytes, bytes] = (b"", b"")
    """Bytes in replies, and as many that stand in their place, such as those of another version."""
    hides_loss: bool = False
    """The server is gone, and its clients do not learn it: what they send gets lost in silence."""


NONE: Final = Faults()
"""Every reply passes at once."""


class Proxy:
    """Listens on a free port of 127.0.0.1 and passes bytes on, with the current `faults`."""

    def __init__(
        self,
        upstream: str,
        *,
        seed: int = 0,
        host: str = "127.0.0.1",
        namespace: str = "",
        mark: int = 0,
    ) -> None:
        """Start it; `upstream` is a broker URL of Celery's form, `tcp://…` or `unix://…`.

        With the path of a network namespace it is there, at `host`; a `mark` is on its packets.
        """
        self._namespace, self._mark = namespace, mark
        self.faults = NONE
        self.counts: Counter[str] = Counter()
        """Replies by what became of them: passed, cut, lost, hung."""
        self._upstream = upstream
        self._chance = random.Random(seed)
        self._open: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()
        listening = asyncio.start_server(self._serve, host, 0)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result(END_SECONDS)
        self.port = int(self._server.sockets[0].getsockname()[1])
        self.url = f"redis://{host}:{self.port}/{_database(upstream)}"

    def _run(self) -> None:
        if self._namespace:
            _enter_network(self._namespace)
        self._loop.run_forever()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def cut_all(self) -> None:
        """Cut every connection."""
        asyncio.run_coroutine_threadsafe(self._cut_all(), self._loop).result(END_SECONDS)

    def close(self) -> None:
        """Cut every connection and listen no more."""
        self._loop.call_soon_threadsafe(self._server.close)
        self.cut_all()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(END_SECONDS)
        self._loop.close()

    async def _cut_all(self) -> None:
        tasks = list(self._open)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            async with _closed_after(writer), self._connected() as (replies, requests):
                connection = _Connection()
                passing = [
                    asyncio.ensure_future(self._pass_requests(reader, requests, connection)),
                    asyncio.ensure_future(self._pass_replies(replies, writer, connection)),
                ]
                try:
                    await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for one in passing:
                        one.cancel()
                    await asyncio.gather(*passing, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass  # the server refuses, or the connection is cut
        finally:
            self._open.discard(task)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        url = urlsplit(self._upstream)
        if url.scheme in {"redis+socket", "unix"}:
            replies, requests = await asyncio.open_unix_connection(url.path)
        else:
            outgoing = socket.socket()
            outgoing.setblocking(False)
            if self._mark:
                outgoing.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, self._mark)
            try:
                await self._loop.sock_connect(outgoing, (url.hostname, url.port))
            except BaseException:
                outgoing.close()
                raise
            replies, requests = await asyncio.open_connection(sock=outgoing)
        async with _closed_after(requests):
            yield replies, requests

    async def _pass_requests(
        self, reader: asyncio.StreamReader, requests: asyncio.StreamWriter, connection: _Connection
    ) -> None:
        while data := await reader.read(CHUNK):
            connection.last_request = data
            if self.faults.hides_loss:
                continue
            requests.write(data)
            await requests.drain()

    async def _pass_replies(
        self, replies: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: _Connection
    ) -> None:
        late = _Late(writer)
        while data := await replies.read(CHUNK):
            faults = self.faults
            if faults.command in connection.last_request and self._chance.random() < faults.lost:
                is_hung = self._chance.random() < 0.5 if faults.hangs is None else faults.hangs
                self.counts["hung" if is_hung else "lost"] += 1
                if is_hung:
                    await asyncio.Event().wait()  # until the client closes the connection
                return
            if faults.replaced[0]:
                data = data.replace(*faults.replaced)
            jitter = self._chance.uniform(-1, 1) * faults.jitter_seconds
            late.write(data, after=max(0.0, faults.delay_seconds + jitter))
            if self._chance.random() < faults.cut:
                self.counts["cut"] += 1
                await late.is_empty()
                return
            self.counts["passed"] += 1


class _Late:
    """Writes bytes after a delay, each in its turn: one delay for all that come together."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._due_at = 0.0

    def write(self, data: bytes, *, after: float) -> None:
        self._due_at = max(self._due_at, self._loop.time() + after)
        if self._due_at <= self._loop.time():
            self._writer.write(data)
        else:
            self._loop.call_at(self._due_at, self._writer.write, data)

    async def is_empty(self) -> None:
        """Wait until all is written."""
        await asyncio.sleep(max(0.0, self._due_at - self._loop.time()))


@dataclass
class _Connection:
    last_request: bytes = b""


@asynccontextmanager
async def _closed_after(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    try:
        yield
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def _enter_network(path: str) -> None:
    """Have what this thread opens in another network; those of other threads stay."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "rb") as namespace:
        if libc.setns(namespace.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter {path}")


def _database(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme == "redis+socket":
        return parse_qs(parts.query).get("virtual_host", ["0"])[0].strip("/")
    return parts.path.strip("/") or "0"
