"""The Lua scripts: each is loaded once and called by the name of its act.

An act is a file in `lua/`. The names of the keys and the shared parts (`lua/shared/`) are put in
front of it. Scripts are atomic, whatever process dies.
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
"""Stands for the server's own time."""

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
    """Run one script on a queue and return its result."""
    [result] = run_all(client, queue, [(act, arguments)], now=now)
    return result


def run_all(
    client: Redis, queue: str, calls: Sequence[Call], *, now: int | str = SERVER_CLOCK
) -> list[Any]:
    """Run scripts on a queue in one round trip, in order; return their results.

    A script that the server does not know (a new one, or after a restart) is sent, and run last.
    If one meets a key of the wrong type or an unusable value, the queue is repaired and all run
    once more. Other errors are raised after all have run.
    """
    results = _run_known(client, queue, calls, now)
    if any(map(is_spoilt, results)):
        # Each act may be repeated, also one that failed halfway.
        quarantine_wrong_keys(client, queue, results)
        results = _run_known(client, queue, calls, now)
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def run_pipelined(client: Redis, calls: Iterable[tuple[str, Call]]) -> None:
    """Run (queue, call) pairs, each sent before the previous one is answered.

    The caller prepares a call while the server runs the previous one. Refused calls are run once
    more at the end, so all must be repeatable; a second refusal is raised. If the connection fails,
    it is unknown which calls have run.
    """
    refused: list[RefusedCalls] = []
    with closing(ScriptConnection(client)) as connection:
        for queue, call in calls:
            connection.send(queue, [call])
            if len(connection) > 1:
                refused += connection.receive()
        while connection:
            refused += connection.receive()
    run_again(client, refused)


class RefusedCalls(NamedTuple):
    """Calls that were sent together, at least one of which the server has refused."""

    queue: str
    calls: Sequence[Call]
    errors: Sequence[Any]
    """Those that `quarantine_wrong_keys` may repair."""


def run_again(client: Redis, refused: Iterable[RefusedCalls]) -> None:
    """Repair the queues, and run the refused calls again; raise the error of a second refusal."""
    # Repair first: otherwise a script that failed halfway would find its act done already.
    refused = list(refused)
    for queue in {each.queue for each in refused if each.errors}:
        quarantine_wrong_keys(client, queue, [error for each in refused for error in each.errors])
    for each in refused:
        run_all(client, each.queue, each.calls)


def send(connection: Any, queue: str, calls: Iterable[Call]) -> None:
    """Send calls on a queue over a connection, to run in order; `read` gets the results."""
    commands = [
        ("EVALSHA", _digest(act), 1, queue, SERVER_CLOCK, *arguments) for act, arguments in calls
    ]
    connection.send_packed_command(connection.pack_commands(commands))


def read(connection: Any, count: int) -> list[Any]:
    """Read `count` results; a refused call's result is its ResponseError."""
    results: list[Any] = []
    for _ in range(count):
        try:
            results.append(connection.read_response())
        except ResponseError as error:
            results.append(error)
    return results


class ScriptConnection:
    """Pipelines calls over one connection."""

    def __init__(self, client: Redis) -> None:
        self._pool = client.connection_pool
        self._connection: Any = self._pool.get_connection()
        self._unanswered: deque[tuple[str, Sequence[Call]]] = deque()

    def __len__(self) -> int:
        return len(self._unanswered)

    def send(self, queue: str, calls: Sequence[Call]) -> None:
        """Send calls on a queue, to run in order."""
        # Before sending: a connection with a part of a command in it must not be reused.
        self._unanswered.append((queue, calls))
        send(self._connection, queue, calls)

    @property
    def timeout(self) -> float | None:
        """The socket timeout in seconds; None for no limit."""
        timeout: float | None = self._connection.socket_timeout
        return timeout

    @property
    def is_answered(self) -> bool:
        """Whether `receive` returns at once: with a reply, or because the connection is lost."""
        if self._connection._sock is None:
            # `can_read` would open a new connection, which gets no reply.
            return True
        try:
            return bool(self._connection.can_read(timeout=0))
        except (LostConnection, OSError):
            return True

    def receive(self) -> list[RefusedCalls]:
        """Wait for the oldest reply; return its calls if any of them was refused."""
        queue, calls = self._unanswered[0]
        results = read(self._connection, len(calls))
        self._unanswered.popleft()
        is_refused = any(isinstance(result, ResponseError) for result in results)
        return [RefusedCalls(queue, calls, [*filter(is_spoilt, results)])] if is_refused else []

    def close(self) -> None:
        """Release the connection; disconnect it first if replies are outstanding."""
        if self._unanswered:
            self._connection.disconnect()
        self._pool.release(self._connection)


def load(client: Redis, acts: Iterable[str]) -> None:
    """Load these scripts into the server, in one round trip."""
    with client.pipeline(transaction=False) as pipe:
        for act in acts:
            pipe.script_load(source(act))
        pipe.execute()


def _run_known(client: Redis, queue: str, calls: Sequence[Call], now: int | str) -> list[Any]:
    """Run calls; return results and errors. Unknown scripts are loaded, and run last."""
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
