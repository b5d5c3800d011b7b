"""Keys of the wrong type in Redis, under workers that are at work: each is put aside."""

import pytest
import redis

from fleet.keys import QUEUE_KEYS, queue_key, wrong_key
from tests.flows.installation import ENDED, Installation
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

QUEUE = "jobs"
SPOILT = ("state", "meta", "body", "eligible", "wake", "workers", "takes", "sleepers", QUEUE)
MENDED_SECONDS = 10.0


def test_runs_go_on_past_keys_of_the_wrong_type(installation: Installation) -> None:
    """Each run succeeds, with one start; the queue repairs itself, and no worker ends."""
    client = installation.servers.client()
    steady = installation.submitter("--count", "10000", "--pause", "0.1")
    wait_for(lambda: installation.count(ENDED) > 5, seconds=30)
    for name in SPOILT:
        key = queue_key(QUEUE, name) if name in QUEUE_KEYS else name
        _spoil(client, key)
        wait_for(
            lambda key=key: client.exists(wrong_key(QUEUE, key)) and client.type(key) != b"string",
            seconds=MENDED_SECONDS,
            what=f"{name} to be put aside",
        )
        before = installation.count(ENDED)
        wait_for(
            lambda at=before: installation.count(ENDED) > at,
            seconds=MENDED_SECONDS,
            what=f"work to go on after {name}",
        )
        installation.stack.watch()
    # Only now: had it ended before, no run would end after the last key, however healthy the queue.
    steady.stop()
    assert max(steady.waits()) < 1.0
    installation.caught_up()
    installation.drained()
    figures = installation.verdict().figures
    assert figures["starts"] == figures["runs"], figures


def _spoil(client: redis.Redis, key: str) -> None:
    """Put a value of a wrong type into a key."""
    with client.pipeline() as pipe:
        pipe.delete(key)
        pipe.set(key, "junk")  # none of them is a string
        pipe.execute()
