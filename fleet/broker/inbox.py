"""A queue that is read in order, without a consumer: a call stays until its reader has done it.

Senders need nothing but Celery: what stands in the list is what their `send_task` puts there.
There is one reader at a time, who sees to that itself; so there are no leases, and nothing to
be given back when the reader dies.
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
    """A task call as it was sent. With a `problem` it is one that nobody can make."""

    id: str = ""
    task: str = ""
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    wants_result: bool = False
    problem: str = ""


def lists(queue: str) -> list[str]:
    """Return the Redis lists of a queue in the order of their reading: one a priority."""
    return [queue if not step else f"{queue}{Channel.sep}{step}" for step in PRIORITY_STEPS]


def oldest(client: Redis, name: str, *, most: int) -> list[bytes]:
    """Return the oldest messages of a list, first in first, and leave them there.

    At most so many, and at most 16 MB of them: one at least, however large.
    """
    found: Any = client.eval(_LOOK, 1, name, str(most), str(BYTES))
    return list(found)


def drop(client: Redis, name: str, raws: Sequence[bytes]) -> None:
    """Take these messages from a list, and nothing else, whatever has become of it meanwhile.

    In their order: of a drop that ended halfway the last are left.
    """
    for start in range(0, len(raws), PAGE):
        with client.pipeline(transaction=False) as pipe:
            for raw in raws[start : start + PAGE]:
                # From the right, where it stands: this looks at one element.
                pipe.lrem(name, -1, raw)  # type: ignore[arg-type]
            pipe.execute()


def calls(raws: Sequence[bytes]) -> Iterator[Call]:
    """Yield the call in each message; of one that cannot be read, its problem."""
    for raw in raws:
        try:
            yield _call(raw)
        # Bytes of anybody's: what a decoder says of them is no list that ends.
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
        raise ValueError("is compressed; send it as it is")
    args, kwargs, embed = loads(
        body, message["content-type"], message["content-encoding"], accept={"application/json"}
    )
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise TypeError("its arguments are no list and no mapping")
    odd = [name for name in ("eta", "expires", "group") if headers.get(name)]
    odd += [name for name, value in (embed or {}).items() if value]
    if odd:
        # Left out of account they would be promises that nobody keeps.
        raise ValueError(f"carries {', '.join(odd)}, which this queue does not know")
    return Call(known.id, known.task, args, kwargs, known.wants_result)
