"""Sends hints without waiting for Redis: the replies are read with the next hints.

A single submit would wait longer for the reply than for all else. Its hint is in the outbox, which
holds it until the reply is there.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from redis import Redis

from fleet.transport import scripts

MOST_UNANSWERED: Final = 100

Receipt = tuple[int, ...]
"""A mark that the caller gives with its calls, and gets back when Redis has confirmed them."""


class Unawaited:
    """One connection with sent calls and their receipts, the oldest first. Not thread-safe."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        # A server that does not know the script refuses the call. That would be noticed, and the
        # call repeated, only with the next one.
        scripts.load(client, ["hints"])
        self._connection = scripts.ScriptConnection(client)
        self._unanswered: deque[tuple[Receipt | None, float]] = deque()

    def send(self, calls: Sequence[tuple[str, scripts.Call]], receipt: Receipt) -> None:
        """Send calls; `collect` returns the receipt once the server has confirmed all of them."""
        for number, (queue, call) in enumerate(calls, start=1):
            self._connection.send(queue, [call])
            whole = receipt if number == len(calls) else None
            self._unanswered.append((whole, time.monotonic()))

    def collect(self, *, timeout: float) -> list[Receipt]:
        """Read the replies that are here; return their receipts.

        Waits for the oldest reply if too many are outstanding. Raises TimeoutError if it has been
        outstanding for longer than `timeout` seconds, and ConnectionError for a lost connection.
        """
        confirmed: list[Receipt] = []
        if not self._unanswered and self._connection.is_answered:
            raise ConnectionError("Redis has closed the connection")
        while self._unanswered:
            receipt, sent_at = self._unanswered[0]
            if not self._connection.is_answered and len(self._unanswered) < MOST_UNANSWERED:
                if time.monotonic() > sent_at + timeout:
                    raise TimeoutError(f"Redis has not answered for {timeout:g} s")
                break
            refused = self._connection.receive()
            self._unanswered.popleft()
            if refused:
                scripts.run_again(self._client, refused)
            if receipt is not None:
                confirmed.append(receipt)
        return confirmed

    def close(self) -> None:
        """Close the connection; calls without a reply are not confirmed."""
        self._connection.close()
