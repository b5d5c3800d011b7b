"""What the fair queue must know of a message, read from Kombu's own form of it. Pure.

A message is a dict with `body`, `headers` and `properties`, as Kombu writes it to Redis in JSON.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kombu.utils.json import loads

from fleet.contract import HEADER, HIGHEST, is_hint
from fleet.router import route_of

MICROSECONDS: Final = 1_000_000
TIME_LIMIT_MOST: Final = 10**9
TEXT_LIMIT: Final = 400
ONCE: Final = "once:"
"""Begins the id of a message that is published with a `message_id`."""
DEADLINE_LIMIT_SECONDS: Final = 10 * 365 * 86400
SERIAL_LIMIT: Final = 2**53
NUL: Final = rb"\u0000"
"""As JSON writes it."""
FOR_THE_QUEUE: Final = ("not_after_seconds", "waited_seconds")
"""Of our header, what only the queue reads."""

# What Kombu's JSON raises: it makes UUIDs, decimals, dates and bytes of what says to be one.
DECODE_ERRORS: Final = (
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError),
)


class MalformedMessage(ValueError):
    """These bytes are no message; the text says why."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a message belongs: see the arguments of `enqueue.lua`. Times in microseconds."""

    id: str
    owner: str
    submission: str = ""
    priority: int = 5
    delay: int = 0
    """Below 0: how long it has waited before."""
    deadline: int | None = None
    lock: str = ""
    task: str = ""

    def group(self, raw: str | bytes) -> tuple[str | bytes | int, ...]:
        """Return the nine arguments that a script takes for this message."""
        deadline = "" if self.deadline is None else self.deadline
        return (
            *(self.id, self.owner, self.submission, self.priority, self.delay, deadline),
            *(self.lock, self.task, raw),
        )


def address(message: Mapping[str, Any], *, now: datetime) -> Address:
    """Return where a message belongs.

    A hint is known by its run and the admission that it is for: published twice, it is one message.
    Any other message is known by its publish, as in Celery: the same task id published twice runs
    twice. One with Kombu's property `message_id` is known by that, while it waits or runs.
    """
    headers = _mapping(message, "headers")
    properties = _mapping(message, "properties")
    ours = headers.get(HEADER)
    ours = ours if isinstance(ours, Mapping) else {}
    route = route_of(headers)
    return Address(
        id=_identity(headers, properties),
        owner=route.owner,
        submission=_text(route.submission),
        priority=_priority(properties.get("priority")),
        delay=_delay(headers.get("eta"), now) or -_waited(ours.get("waited_seconds")),
        deadline=relative(ours.get("not_after_seconds")),
        lock=_text(route.lock_key),
        task=_text(headers.get("task")),
    )


def is_text(id_: bytes) -> bool:
    """Say whether these bytes are an id as it is written here."""
    try:
        return bool(id_.decode())
    except UnicodeDecodeError:
        return False


def hint_id(run_id: str, token: int) -> str:
    """Return by what a hint is known: its run, and which admission it is for."""
    return f"{run_id}:{token}"


def _identity(headers: Mapping[str, Any], properties: Mapping[str, Any]) -> str:
    """Return by what a message is known."""
    if is_hint(headers) and (run_id := _text(headers.get("id"))):
        return hint_id(run_id, _serial(headers[HEADER].get("token")))
    if chosen := _text(properties.get("message_id")):
        return f"{ONCE}{chosen}"
    # Kombu's, another one for each publish. A colon belongs to ids of the two kinds above.
    delivery_tag = _text(properties.get("delivery_tag"))
    return delivery_tag if delivery_tag and ":" not in delivery_tag else str(uuid.uuid4())


def parsed(raw: bytes | str) -> dict[str, Any]:
    """Return the message that these bytes are; raise MalformedMessage when they are none."""
    try:
        message = read_json(raw.decode() if isinstance(raw, bytes) else raw)
    except DECODE_ERRORS as error:
        raise MalformedMessage(f"not JSON: {error!r}") from error
    if not isinstance(message, dict):
        raise MalformedMessage(f"a {type(message).__name__} in place of an object")
    _mapping(message, "headers")
    properties = _mapping(message, "properties")
    if not isinstance(properties.get("delivery_info"), dict):
        raise MalformedMessage("properties.delivery_info is no object")
    return message


def read_json(text: str) -> Any:
    """Return what a JSON text says, as Kombu reads it; in a third of the time, mostly."""
    return loads(text) if "__type__" in text else json.loads(text)


def delivered(raw: bytes | str, *, tag: str, is_redelivered: bool = False) -> dict[str, Any]:
    """Return a message for its consumer, without what was meant for the queue alone.

    What delayed it has passed; times from now would count anew if it were sent once more.
    """
    message = parsed(raw)
    properties, headers = message["properties"], message["headers"]
    properties["delivery_tag"] = tag
    if is_redelivered:
        # Where Kombu says it, and Celery reads it.
        headers["redelivered"] = properties["delivery_info"]["redelivered"] = True
    if NUL in raw if isinstance(raw, bytes) else NUL.decode() in raw:
        _refuse_nul(headers)
    if headers.get("eta"):
        headers["eta"] = None
    ours = headers.get(HEADER)
    if isinstance(ours, dict):
        for name in FOR_THE_QUEUE:
            ours.pop(name, None)
    return message


def _refuse_nul(headers: Mapping[str, Any]) -> None:
    """Raise MalformedMessage for an id, a name, say, that PostgreSQL cannot store."""
    for name, value in headers.items():
        if isinstance(value, str) and "\0" in value:
            raise MalformedMessage(f"{name:.100} has a NUL")


def refuse_limits(limits: object) -> None:
    """Raise MalformedMessage for time limits at which Celery's pool would fall over."""
    if limits is None:
        return
    if not isinstance(limits, list) or len(limits) != 2:
        raise MalformedMessage("timelimit is no pair")
    for limit in limits:
        is_number = isinstance(limit, int | float) and not isinstance(limit, bool)
        if limit is not None and not (is_number and 0 <= limit < TIME_LIMIT_MOST):
            raise MalformedMessage(f"timelimit has {limit!r:.100} in place of seconds")


def _mapping(message: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = message.get(name)
    if not isinstance(value, dict):
        raise MalformedMessage(f"{name} is no object")
    return value


def _text(value: object) -> str:
    """Return an id or a name as text that Redis can be told: JSON has halves of characters."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value)[:TEXT_LIMIT].encode("utf-8", "replace").decode()


def _serial(value: object) -> int:
    """Return the number of an admission; 0 for what is none."""
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 <= value < SERIAL_LIMIT else 0


def _priority(value: object) -> int:
    """Return Celery's priority, lower first on Redis, as ours."""
    try:
        return HIGHEST - max(0, min(HIGHEST, int(value or 0)))  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return HIGHEST


def _delay(eta: object, now: datetime) -> int:
    """Return how long from now: relative, because clocks of machines differ; 10 years at most.

    The queue takes a time that is further away for one that a foreign hand has written.
    """
    if not isinstance(eta, str):
        return 0
    try:
        due = datetime.fromisoformat(eta)
    except ValueError:
        return 0  # Celery's own refusal of it is the better one
    due = due if due.tzinfo else due.replace(tzinfo=UTC)
    seconds = min((due - now).total_seconds(), DEADLINE_LIMIT_SECONDS)
    return max(0, round(seconds * MICROSECONDS))


def _waited(seconds: object) -> int:
    """Return how long it has waited before, in microseconds; 0 for what is no such time."""
    return max(0, relative(seconds) or 0)


def relative(seconds: object) -> int | None:
    """Return a deadline in microseconds from now; None for none, or one that is no time."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    # Also false for a NaN.
    is_time = abs(seconds) <= DEADLINE_LIMIT_SECONDS
    return round(seconds * MICROSECONDS) if is_time else None
