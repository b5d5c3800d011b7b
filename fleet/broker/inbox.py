"""The inbox: a stock queue that is read in order, without a consumer.

Senders use Celery's `send_task`. A call stays in the list until its reader has handled it. The
reader makes sure that it is the only one, so there are no leases.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kombu.exceptions import KombuError
from kombu.serialization import loads
from kombu.transport.redis import PRIORITY_STEPS, Channel
from kombu.utils.json import loads as json_loads
from redis import Redis

PAGE: Final = 250
BYTES: Final = 16 * 2**20
ID_LIMIT: Final = 255
_LOOK: Final = Path(__file__).with_suffix(".lua").read_text()


@dataclass(frozen=True, slots=True)
class Call:
    """A task call as it was sent; `problem` says why it cannot be handled."""

    id: str = ""
    task: str = ""
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    wants_result: bool = False
    problem: str = ""


def lists(queue: str) -> list[str]:
    """Return the Redis lists of a queue, one for each priority, in reading order."""
    return [queue if not step else f"{queue}{Channel.sep}{step}" for step in PRIORITY_STEPS]


def are_empty(client: Redis, *names: str) -> bool:
    """Say whether no list has a message."""
    return client.exists(*names) == 0


def oldest(client: Redis, name: str, *, most: int) -> list[bytes]:
    """Return the oldest messages of a list, without removing them.

    At most `most`, and at most 16 MiB; but at least one.
    """
    found: Any = client.eval(_LOOK, 1, name, str(most), str(BYTES))
    return list(found)


def drop(client: Redis, name: str, raws: Sequence[bytes]) -> None:
    """Remove these messages, and no others, from a list, in their order."""
    for start in range(0, len(raws), PAGE):
        with client.pipeline(transaction=False) as pipe:
            for raw in raws[start : start + PAGE]:
                # From the right, where the oldest is: Redis looks at one element.
                pipe.lrem(name, -1, raw)  # type: ignore[arg-type]
            pipe.execute()


def calls(raws: Sequence[bytes]) -> Iterator[Call]:
    """Yield the call in each message; an unreadable one has a problem."""
    for raw in raws:
        try:
            yield _call(raw)
        # Bytes of any client: decoders may raise any error.
        except Exception as error:
            yield Call(problem=f"cannot be read ({type(error).__name__}: {error})"[:300])


def _call(raw: bytes) -> Call:
    message = json_loads(raw)
    headers, properties = message["headers"], message["properties"]
    if not isinstance(headers, dict) or "task" not in headers or "id" not in headers:
        return Call(problem="is no task of Celery's message protocol 2")
    known = Call(
        id=str(headers["id"])[:ID_LIMIT],
        task=str(headers["task"])[:ID_LIMIT],
        wants_result=headers.get("ignore_result") is False,
    )
    try:
        return _complete(known, message, headers, properties)
    except (KombuError, ValueError, TypeError, KeyError, RecursionError) as error:
        problem = f"cannot be read ({type(error).__name__}: {error})"[:300]
        return Call(known.id, known.task, wants_result=known.wants_result, problem=problem)


def _complete(
    known: Call, message: Mapping[str, Any], headers: Mapping[str, Any], properties: Any
) -> Call:
    body = message["body"]
    if properties.get("body_encoding") == "base64":
        body = base64.b64decode(body)
    if headers.get("compression"):
        raise ValueError("is compressed; send it uncompressed")
    args, kwargs, embed = loads(
        body, message["content-type"], message["content-encoding"], accept={"application/json"}
    )
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise TypeError("its arguments are not a list and a mapping")
    odd = [name for name in ("eta", "expires", "group") if headers.get(name)]
    odd += [name for name, value in (embed or {}).items() if value]
    if odd:
        # Ignoring them would break what Celery promises to the sender.
        raise ValueError(f"carries {', '.join(odd)}, which this queue does not support")
    return Call(known.id, known.task, args, kwargs, known.wants_result)
