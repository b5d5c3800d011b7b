"""A fair queue and one worker, through the scripts that the transport calls."""

from typing import Any

import redis

from fleet.transport import scripts

SECOND = 1_000_000


class Queue:
    """A fair queue, and the one worker that takes from it."""

    def __init__(self, client: redis.Redis, name: str = "jobs") -> None:
        self.client, self.name = client, name
        self.taken = 0

    def run(self, act: str, *arguments: Any) -> Any:
        return scripts.run(self.client, self.name, act, *arguments)

    def put(
        self, owner: str, *ids: str, submission: str = "", lock: str = "", delay_seconds: float = 0
    ) -> None:
        for one in ids:
            delay = int(delay_seconds * SECOND)
            self.run("enqueue", one, owner, submission, 5, delay, "", lock, "tests.add", "{}")

    def take(self, most: int = 1) -> list[tuple[str, bytes]]:
        """Take messages; return id and lease of each."""
        self.taken, _sleep, _foreign, _diverted, _epoch, _told, *messages = self.run(
            "take", "w1", 60 * SECOND, self.taken, most, 0, most
        )
        return [(message[0].decode(), message[1]) for message in messages]

    def finish(self, *taken: tuple[str, bytes], seconds: float) -> None:
        for one, lease in taken:
            self.run("done", "w1", one, lease, int(seconds * SECOND))


def who(taken: list[tuple[str, bytes]]) -> list[str]:
    return [one for one, _lease in taken]
