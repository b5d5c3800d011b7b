"""Templates: one message for many hints, made by Celery and filled in by a script.

Celery and Kombu take 60 µs to make a message. Similar hints differ only in run, token, owner,
submission, job and lock. So Celery makes one message with marks for these; it goes to Redis once
for hundreds of hints, and the script replaces the marks. Delays and deadlines are not part of the
message: only the queue reads them.
"""

from __future__ import annotations

import re
from typing import Any, Final

from fleet.contract import Hint
from fleet.transport.envelope import MICROSECONDS, relative

# Values that occur in no message: texts for ids and names, numbers for numbers.
RUN: Final = "8d6ff03c-93a1-4b5e-9f5a-d1c2f0b7a6e4"
OWNER: Final = "m4rk-of-an-owner-7c1e5a90b2"
SUBMISSION: Final = 8_713_605_218_447_031
TOKEN: Final = 8_713_605_218_447_033
JOB: Final = 8_713_605_218_447_039
LOCK: Final = "m4rk-of-a-lock-1f60d83c57"

_HOLES: Final = {
    RUN: "run",
    f'"{OWNER}"': "owner",
    str(SUBMISSION): "submission",
    str(TOKEN): "token",
    str(JOB): "job",
    f'"{LOCK}"': "lock",
}
_MARK: Final = re.compile("(" + "|".join(_HOLES) + ")")

Group = tuple[Any, ...]
"""The nine arguments of `enqueue` for a message."""


class Template:
    """The message of similar hints, into which `hints.lua` fills values."""

    def __init__(self, group: Group) -> None:
        """Make a template from Kombu's message for `marked(hint)`."""
        *_, priority, _delay, _deadline, _lock, task, text = group
        pieces = [_HOLES.get(part, part) for part in _MARK.split(text)]
        self.arguments = (priority, task, len(pieces), *pieces)
        """The arguments of `hints.lua` before the values of each hint."""


def values(hint: Hint) -> tuple[Any, ...]:
    """Return the arguments of `hints.lua` for one hint."""
    deadline = None if hint.not_after_seconds is None else relative(hint.not_after_seconds)
    return (
        *(hint.run_id, hint.token, hint.owner, hint.submission or ""),
        "" if hint.job is None else hint.job,
        round(hint.delay_seconds * MICROSECONDS),
        hint.lock,
        "" if deadline is None else deadline,
    )


def kind(hint: Hint) -> tuple[Any, ...]:
    """Return the key of a hint's template."""
    has = (hint.job is not None, bool(hint.lock))
    return (hint.queue, hint.task, hint.attempt, hint.priority, *has)


def marked(hint: Hint) -> Hint:
    """Return a hint of the same template, with marks for its values."""
    return hint._replace(
        run_id=RUN,
        owner=OWNER,
        submission=SUBMISSION,
        token=TOKEN,
        job=None if hint.job is None else JOB,
        lock=LOCK if hint.lock else "",
        delay_seconds=0.0,
        not_after_seconds=None,
    )


class Capture:
    """Wraps a channel to capture a message instead of sending it."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self.group: Group = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def basic_publish(self, message: Any, **kwargs: Any) -> None:
        self._channel.basic_publish(message, _publish_batch=self, **kwargs)

    def add_fair(self, _queue: str, group: Group) -> None:
        self.group = group
