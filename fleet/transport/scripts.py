"""The Lua scripts, loaded once, called by name.

Each act is a file in `lua/`, put behind the names of the keys and what all acts share
(`lua/shared/`). A script is atomic: what it keeps true holds whoever dies when.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from redis import Redis
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import NoScriptError, ResponseError

from fleet.fairness.backlog import AGEING_SECONDS
from fleet.fairness.leasing import REJECTED_SECONDS
from fleet.fairness.queue import BUFFER_SECONDS, UNKNOWN_SECONDS
from fleet.keys import lua_names
from fleet.transport.repair import is_spoilt, quarantine_wrong_keys

SERVER_CLOCK: Final = ""
"""In place of a time in microseconds: the server's own."""

PARTS: Final = ("queue", "epoch", "accounts", "messages", "leases")
SHARED: Final = tuple(f"shared/{part}" for part in PARTS)
"""Each part uses those before it."""


@cache
def source(act: str) -> str:
    """Return the whole text of a script."""
    folder = files("fleet.transport") / "lua"
    constants = (
        f"local AGEING = {AGEING_SECONDS * 1_000_000:.0f}\n"
        f"local UNKNOWN = {UNKNOWN_SECONDS * 1_000_000:.0f}\n"
        f"local BUFFER = {BUFFER_SECONDS * 1_000_000:.0f}\n"
        f"local REJECTED = {REJECTED_SECONDS * 1_000_000:.0f}\n"
    )
    texts = [(folder / f"{name}.lua").read_text() for name in (*SHARED, act)]
    return "".join((lua_names(), constants, *texts))


@cache
def _digest(act: str) -> str:
    return hashlib.sha1(source(act).encode(), usedforsecurity=False).hexdigest()


Call = tuple[str, Sequence[Any]]
"""An act and its arguments, without the time."""


def run(client: Redis, queue: str, act: str, *arguments: Any, now: int | str = SERVER_CLOCK) -> Any:
    """Run one script on a queue and return what its file says."""
    [result] = run_all(client, queue, [(act, arguments)], now=now)
    return result


def run_all(
    client: Redis, queue: str, calls: Sequence[Call], *, now: int | str = SERVER_CLOCK
) -> list[Any]:
    """Run scripts on a queue in one round trip, in order; return their results.

    The server may not know a script (a new one, or after a restart): nothing of it has then
    happened, and it is sent. Where one met a key of the wrong type or a value that it cannot use,
    the queue is mended, and all run once more. Another error of a script is raised after all have
    run.
    """
    results = _run_known(client, queue, calls, now)
    if any(map(is_spoilt, results)):
        # Whoever has mended it: each act may be repeated, also one that failed halfway.
        quarantine_wrong_keys(client, queue, results)
        results = _run_known(client, queue, calls, now)
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def run_pipelined(client: Redis, calls: Iterable[tuple[str, Call]]) -> None:
    """Run scripts on queues, of (queue, call), each sent before the one before it is answered.

    While the server works on one, the caller can prepare the next. What the server refuses is run
    once more when all have been answered: only for what may be repeated. Raises its error then;
    when the connection fails it is not known what has been done.
    """
    refused: list[Refused] = []
    with closing(ScriptConnection(client)) as connection:
        for queue, call in calls:
            connection.send(queue, [call])
            if len(connection) > 1:
                refused += connection.receive()
        while connection:
            refused += connection.receive()
    run_again(client, refused)


class Refused(NamedTuple):
    """Scripts of which the server has refused some: of the others it is not known."""

    queue: str
    calls: Sequence[Call]
    errors: Sequence[Any]
    """Of these, what `quarantine_wrong_keys` may put right."""


def run_again(client: Redis, refused: Iterable[Refused]) -> None:
    """Run again what was refused, which may be repeated; raise what it is refused for now."""
    # First: a script that failed halfway would find that it had been done.
    refused = list(refused)
    for queue in {each.queue for each in refused if each.errors}:
        quarantine_wrong_keys(client, queue, [error for each in refused for error in each.errors])
    for each in refused:
        run_all(client, each.queue, each.calls)


def send(connection: Any, queue: str, calls: Iterable[Call]) -> None:
    """Send scripts on a queue over a connection, to be run in order; `read` gets the results."""
    commands = [
        ("EVALSHA", _digest(act), 1, queue, SERVER_CLOCK, *arguments) for act, arguments in calls
    ]
    connection.send_packed_command(connection.pack_commands(commands))


def read(connection: Any, count: int) -> list[Any]:
    """Read the results of so many scripts; one that the server refused is its ResponseError."""
    results: list[Any] = []
    for _ in range(count):
        try:
            results.append(connection.read_response())
        except ResponseError as error:
            results.append(error)
    return results


class ScriptConnection:
    """Scripts over one connection, sent whether or not the last ones have been answered."""

    def __init__(self, client: Redis) -> None:
        self._pool = client.connection_pool
        self._connection: Any = self._pool.get_connection()
        self._unanswered: deque[tuple[str, Sequence[Call]]] = deque()

    def __len__(self) -> int:
        return len(self._unanswered)

    def send(self, queue: str, calls: Sequence[Call]) -> None:
        """Send scripts on a queue, to be run in order."""
        # First: sent in part, it is not a connection that anybody else may use.
        self._unanswered.append((queue, calls))
        send(self._connection, queue, calls)

    @property
    def timeout(self) -> float | None:
        """How long (seconds) its connection waits for an answer; None for ever."""
        timeout: float | None = self._connection.socket_timeout
        return timeout

    @property
    def is_answered(self) -> bool:
        """Whether there is something to receive: an answer, or that the connection is lost."""
        if not self._connection.is_connected:
            # Asked whether it can be read, it would connect anew, and never be answered.
            return True
        try:
            return bool(self._connection.can_read(timeout=0))
        except (LostConnection, OSError):
            return True

    def receive(self) -> list[Refused]:
        """Wait until what was sent first has been answered; return it if any of it was refused."""
        queue, calls = self._unanswered[0]
        results = read(self._connection, len(calls))
        self._unanswered.popleft()
        is_refused = any(isinstance(result, ResponseError) for result in results)
        return [Refused(queue, calls, [*filter(is_spoilt, results)])] if is_refused else []

    def close(self) -> None:
        """Give the connection back; one with answers still to come is not used again."""
        if self._unanswered:
            self._connection.disconnect()
        self._pool.release(self._connection)


def load(client: Redis, acts: Iterable[str]) -> None:
    """Have the server know these scripts, in one round trip."""
    with client.pipeline(transaction=False) as pipe:
        for act in acts:
            pipe.script_load(source(act))
        pipe.execute()


def _run_known(client: Redis, queue: str, calls: Sequence[Call], now: int | str) -> list[Any]:
    """Run scripts; return results and errors. What the server does not know is sent to it."""
    results = _execute(client, queue, calls, now)
    unknown = [at for at, result in enumerate(results) if isinstance(result, NoScriptError)]
    if unknown:
        for act in {calls[at][0] for at in unknown}:
            client.script_load(source(act))
        again = _execute(client, queue, [calls[at] for at in unknown], now)
        for at, result in zip(unknown, again, strict=True):
            results[at] = result
    return results


def _execute(client: Redis, queue: str, calls: Sequence[Call], now: int | str) -> list[Any]:
    with client.pipeline(transaction=False) as pipe:
        for act, arguments in calls:
            pipe.evalsha(_digest(act), 1, queue, now, *arguments)
        return list(pipe.execute(raise_on_error=False))
