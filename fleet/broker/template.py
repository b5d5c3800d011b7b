"""Templates: the message of many hints, made once by Celery and filled in for each.

Celery and Kombu make a message in 60 µs, of which a hint differs in its run, token, owner,
submission, job and lock only. So they make one whose differing values are marks; it goes to Redis
once for hundreds of hints, and the script that puts them in fills in each one's values. A delay
and a deadline stand in no message: what the queue alone reads is taken off when it is delivered.
"""

from __future__ import annotations

import re
from typing import Any, Final

from fleet.contract import Hint
from fleet.transport.envelope import MICROSECONDS, relative

# What no message holds by itself: as text for ids and names, as numbers for numbers.
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
"""A message as the nine arguments of `enqueue`."""


class Template:
    """The message of the hints that are alike but for the values that `hints.lua` fills in."""

    def __init__(self, group: Group) -> None:
        """Make a template of the group that Kombu's channel made of `marked(hint)`."""
        *_, priority, _delay, _deadline, _lock, task, text = group
        pieces = [_HOLES.get(part, part) for part in _MARK.split(text)]
        self.arguments = (priority, task, len(pieces), *pieces)
        """What `hints.lua` takes before the values of each hint."""


def values(hint: Hint) -> tuple[Any, ...]:
    """Return what `hints.lua` takes for one hint."""
    deadline = None if hint.not_after_seconds is None else relative(hint.not_after_seconds)
    return (
        *(hint.run_id, hint.token, hint.owner, hint.submission or ""),
        "" if hint.job is None else hint.job,
        round(hint.delay_seconds * MICROSECONDS),
        hint.lock,
        "" if deadline is None else deadline,
    )


def kind(hint: Hint) -> tuple[Any, ...]:
    """Return what hints of one template have in common."""
    has = (hint.job is not None, bool(hint.lock))
    return (hint.queue, hint.task, hint.attempt, hint.priority, *has)


def marked(hint: Hint) -> Hint:
    """Return a hint of the same template, with marks for what differs."""
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
    """Stands for a channel, of which one message is wanted as the channel would put it."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self.group: Group = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def basic_publish(self, message: Any, **kwargs: Any) -> None:
        self._channel.basic_publish(message, _publish_batch=self, **kwargs)

    def add_fair(self, _queue: str, group: Group) -> None:
        self.group = group
