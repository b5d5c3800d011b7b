"""What the fair queue must know about a message in Kombu's form. Pure.

A message is a dict with `body`, `headers` and `properties`, which Kombu writes to Redis as JSON. A
hint is stored as a list of its values (`HINT_VALUES`), in a seventh of the space.
"""

from __future__ import annotations

import base64
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
"""Prefix of the id of a message that is published with a `message_id`."""
DEADLINE_LIMIT_SECONDS: Final = 10 * 365 * 86400
SERIAL_LIMIT: Final = 2**53
HINT_VALUES: Final = (
    *("run", "token", "task", "queue", "owner"),
    *("submission", "job", "attempt", "priority", "lock"),
)
"""The texts of a stored hint, in this order (see `hints.lua`); `submission` and `job` may be ''."""
_SAME: Final = {
    # No arguments, as Kombu writes them.
    "body": base64.b64encode(
        b'[[], {}, {"callbacks": null, "errbacks": null, "chain": null, "chord": null}]'
    ).decode(),
    "content-encoding": "utf-8",
    "content-type": "application/json",
}
_SAME_HEADERS: Final = {
    **dict.fromkeys(("shadow", "eta", "expires", "group", "group_index", "parent_id")),
    **dict.fromkeys(("argsrepr", "kwargsrepr"), "…"),
    "lang": "py",
    "ignore_result": True,
    "replaced_task_nesting": 0,
    "stamped_headers": None,
}
_SAME_PROPERTIES: Final = {"reply_to": "", "delivery_mode": 2, "body_encoding": "base64"}
"""What the messages of all hints have."""
NUL: Final = rb"\u0000"
"""A NUL in JSON."""
FOR_THE_QUEUE: Final = ("not_after_seconds", "waited_seconds")
"""The fields of our header that only the queue reads."""

# Kombu's JSON converts marked values to UUIDs, decimals, dates and bytes, and raises these.
DECODE_ERRORS: Final = (
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError),
)


class MalformedMessage(ValueError):
    """The bytes are not a message; the text says why."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a message belongs: the arguments of `enqueue.lua`. Times in microseconds."""

    id: str
    owner: str
    submission: str = ""
    priority: int = 5
    delay: int = 0
    """Below 0: how long it has waited already."""
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

    A hint's id is its run and the token of its next admission: published twice, it is one message.
    Any other message has a new id for each publish, as in Celery: a task id published twice runs
    twice. Kombu's property `message_id`, if set, is the id while the message waits or runs.
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
    """Say whether these bytes are the text of an id."""
    try:
        return bool(id_.decode())
    except UnicodeDecodeError:
        return False


def hint_id(run_id: str, token: int) -> str:
    """Return the id of a hint: its run, and the token of its next admission."""
    return f"{run_id}:{token}"


def _identity(headers: Mapping[str, Any], properties: Mapping[str, Any]) -> str:
    """Return the id of a message."""
    if is_hint(headers) and (run_id := _text(headers.get("id"))):
        return hint_id(run_id, _serial(headers[HEADER].get("token")))
    if chosen := _text(properties.get("message_id")):
        return f"{ONCE}{chosen}"
    # Kombu makes one for each publish. A colon occurs only in ids of the two kinds above.
    delivery_tag = _text(properties.get("delivery_tag"))
    return delivery_tag if delivery_tag and ":" not in delivery_tag else str(uuid.uuid4())


def parsed(raw: bytes | str) -> dict[str, Any]:
    """Return the message in these bytes, or raise MalformedMessage."""
    try:
        message = read_json(raw.decode() if isinstance(raw, bytes) else raw)
    except DECODE_ERRORS as error:
        raise MalformedMessage(f"not JSON: {error!r}") from error
    if isinstance(message, list):
        return _hint_message(message)
    if not isinstance(message, dict):
        raise MalformedMessage(f"a {type(message).__name__} in place of an object")
    _mapping(message, "headers")
    properties = _mapping(message, "properties")
    if not isinstance(properties.get("delivery_info"), dict):
        raise MalformedMessage("properties.delivery_info is no object")
    return message


def _hint_message(values: list[Any]) -> dict[str, Any]:
    """Return the message that Celery would make for a stored hint, or raise MalformedMessage."""
    if len(values) != len(HINT_VALUES) or not all(isinstance(each, str) for each in values):
        raise MalformedMessage("a list that is no hint")
    run, token, task, queue, owner, submission, job, attempt, priority, lock = values
    facts: dict[str, Any] = {"owner": owner, "submission": None, "run": run}
    try:
        facts["token"], retries, urgency = int(token), int(attempt) - 1, int(priority)
        if submission:
            facts["submission"] = int(submission)
        if job:
            facts["job"] = int(job)
    except ValueError as error:
        raise MalformedMessage(f"a hint with a text in place of a number: {error}") from error
    if lock:
        facts["lock"] = lock
    return {
        **_SAME,
        "headers": {
            **_SAME_HEADERS,
            "task": task,
            "id": run,
            "root_id": run,
            "retries": retries,
            "timelimit": [None, None],
            "stamps": {},
            HEADER: facts,
        },
        "properties": {
            **_SAME_PROPERTIES,
            "correlation_id": run,
            "delivery_info": {"exchange": "", "routing_key": queue},
            "priority": HIGHEST - urgency,
            "delivery_tag": run,
        },
    }


def read_json(text: str) -> Any:
    """Return a JSON text's value as Kombu does; without typed values in a third of the time."""
    return loads(text) if "__type__" in text else json.loads(text)


def delivered(raw: bytes | str, *, tag: str, is_redelivered: bool = False) -> dict[str, Any]:
    """Return a message for its consumer, without delays and fields that are for the queue.

    Relative times would count again if the message were sent once more.
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
    """Raise MalformedMessage for a header, such as an id, that PostgreSQL cannot store."""
    for name, value in headers.items():
        if isinstance(value, str) and "\0" in value:
            raise MalformedMessage(f"{name:.100} has a NUL")


def refuse_limits(limits: object) -> None:
    """Raise MalformedMessage for time limits that crash Celery's pool."""
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
    """Return an id or a name as valid UTF-8; "" for other types. JSON may have lone surrogates."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value)[:TEXT_LIMIT].encode("utf-8", "replace").decode()


def _serial(value: object) -> int:
    """Return the token of an admission; 0 for an invalid one."""
    if isinstance(value, bool) or not isinstance(value, int):
        return 0
    return value if 0 <= value < SERIAL_LIMIT else 0


def _priority(value: object) -> int:
    """Return our priority, higher first, for Celery's, which is lower first on Redis."""
    try:
        return HIGHEST - max(0, min(HIGHEST, int(value or 0)))  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return HIGHEST


def _delay(eta: object, now: datetime) -> int:
    """Return the microseconds until `eta`, 10 years at most.

    Relative, because clocks of machines differ. The queue treats a later time as malformed.
    """
    if not isinstance(eta, str):
        return 0
    try:
        due = datetime.fromisoformat(eta)
    except ValueError:
        return 0  # Celery refuses it with a better error
    due = due if due.tzinfo else due.replace(tzinfo=UTC)
    seconds = min((due - now).total_seconds(), DEADLINE_LIMIT_SECONDS)
    return max(0, round(seconds * MICROSECONDS))


def _waited(seconds: object) -> int:
    """Return how long it has waited already, in microseconds; 0 for an invalid time."""
    return max(0, relative(seconds) or 0)


def relative(seconds: object) -> int | None:
    """Return a deadline in microseconds from now; None for none, or an invalid one."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    # False for a NaN.
    is_time = abs(seconds) <= DEADLINE_LIMIT_SECONDS
    return round(seconds * MICROSECONDS) if is_time else None
