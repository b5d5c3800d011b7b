"""Adoption: takes over messages that stock Celery clients push to a fair queue's plain lists."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from redis import Redis

from fleet.transport import scripts
from fleet.transport.envelope import MalformedMessage, address, parsed
from fleet.transport.quarantine import reason

ADOPT_AT_MOST: Final = 100


def adopt(channel: Any, queue: str) -> None:
    """Adopt up to `ADOPT_AT_MOST` messages of each list that stand before our placeholders.

    An ETA is a time of the client's clock. Redis's time says how far it is, not this worker's.
    """
    with channel.conn_or_acquire() as client:
        now = cache(lambda: _time_of(client))
        for step in channel.priority_steps:
            plain = channel._q_for_pri(queue, step)
            for raw in client.lrange(plain, 0, ADOPT_AT_MOST - 1):
                try:
                    group = address(parsed(raw), now=now()).group(raw)
                except MalformedMessage as error:
                    facts = (reason(error), "list", plain, raw)
                    if not scripts.run(client, queue, "quarantine", *facts) and not raw:
                        break  # our placeholders begin here
                else:
                    scripts.run(client, queue, "adopt", plain, raw, *group)


def _time_of(client: Redis) -> datetime:
    """Return the time of Redis's clock."""
    seconds, microseconds = client.time()
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=microseconds)
