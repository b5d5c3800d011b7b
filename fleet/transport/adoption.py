"""Adoption: takes over messages that stock Celery clients push to a fair queue's plain lists."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from fleet.transport import scripts
from fleet.transport.envelope import MalformedMessage, address, parsed
from fleet.transport.quarantine import reason

ADOPT_AT_MOST: Final = 100


def adopt(channel: Any, queue: str) -> None:
    """Adopt up to `ADOPT_AT_MOST` messages of each list that stand before our placeholders."""
    with channel.conn_or_acquire() as client:
        for step in channel.priority_steps:
            plain = channel._q_for_pri(queue, step)
            for raw in client.lrange(plain, 0, ADOPT_AT_MOST - 1):
                try:
                    group = address(parsed(raw), now=datetime.now(UTC)).group(raw)
                except MalformedMessage as error:
                    facts = (reason(error), "list", plain, raw)
                    if not scripts.run(client, queue, "quarantine", *facts) and not raw:
                        break  # our placeholders begin here
                else:
                    scripts.run(client, queue, "adopt", plain, raw, *group)
