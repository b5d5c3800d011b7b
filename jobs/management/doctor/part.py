"""A part of the examination: checks one after the other, in a thread that may be late.

Whether a server answers is one question, asked first and with one statement: `SELECT 1` and `PING`.
Everything after it may take long on a busy machine, and says nothing about the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from django.core.checks import CheckMessage, Error
from django.db import DatabaseError
from psycopg import Error as PsycopgError
from psycopg.errors import QueryCanceled
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

Look = Callable[[], Iterable[CheckMessage]]
SERVER_ERRORS: Final = (DatabaseError, PsycopgError, RedisError)


class Unreachable(Exception):
    """A server has not answered its one question; the text has the reason.

    `found` says better what is wrong than that the server does not answer.
    """

    def __init__(self, reason: str, found: CheckMessage | None = None) -> None:
        super().__init__(reason)
        self.found = found


@dataclass(slots=True)
class Part:
    """What one thread finds; it stays if the thread is late."""

    run: Callable[[Part], None]
    unreachable: Callable[[str], CheckMessage] | None = None
    """Makes the message of this part's server, of a reason; None: it has no server of its own."""
    is_reached: bool = False
    """Whether the server has answered."""
    messages: list[CheckMessage] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    """Names of the checks that were made."""
    late: list[str] = field(default_factory=list)
    """Names of the checks whose server took too long for an answer."""
    failed: list[tuple[str, Exception]] = field(default_factory=list)
    _planned: list[str] = field(default_factory=list)

    def __call__(self) -> None:
        """Make all checks of this part."""
        try:
            self.run(self)
        except Unreachable as error:
            self._planned.clear()
            self.is_reached = True
            if error.found is not None:
                self.messages.append(error.found)
            elif self.unreachable is not None:
                self.messages.append(self.unreachable(str(error)))

    def make(self, looks: Sequence[tuple[str, Look]]) -> None:
        """Make checks, by name; one that fails or is late is no reason to leave the others out."""
        self._planned += [name for name, _ in looks]
        for name, look in looks:
            try:
                for message in look():
                    self.messages.append(message)
            except Exception as error:
                self._note(name, error)
            else:
                self.made.append(name)
            self._planned.remove(name)

    def _note(self, name: str, error: Exception) -> None:
        if isinstance(error, RedisTimeoutError) or QueryCanceled in map(
            type, (error, error.__cause__)
        ):
            self.late.append(name)
        else:
            self.failed.append((name, error))

    @property
    def has_lost_a_server(self) -> bool:
        """Whether a check failed as it does when its server has gone away meanwhile."""
        return any(isinstance(error, SERVER_ERRORS) for _, error in self.failed)

    @property
    def unmade(self) -> list[str]:
        """Names of the checks that are not ready: the one that is made now comes first."""
        return [*self._planned, *self.late]

    def failures(self, *, is_server_away: bool) -> list[CheckMessage]:
        """Return a message for each check that failed; with a server away, for others only."""
        return [
            _failure(name, error)
            for name, error in self.failed
            if not (is_server_away and isinstance(error, SERVER_ERRORS))
        ]


def named(looks: Iterable[Look]) -> list[tuple[str, Look]]:
    """Return checks with the names of their functions."""
    return [(look.__name__.strip("_"), look) for look in looks]


def bound(look: Callable[..., Iterable[CheckMessage]], *given: object) -> tuple[str, Look]:
    """Return a check of some arguments, with the name of its function."""
    return look.__name__.strip("_"), partial(look, *given)


def _failure(name: str, error: Exception) -> CheckMessage:
    reason = " ".join(str(error).split()) or type(error).__name__
    return Error(
        f"The check {name} failed: {type(error).__name__}: {reason}",
        hint="See what it says; if it is none of yours, report it.",
        id="fairshift.D002",
    )
