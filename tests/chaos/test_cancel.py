"""Cancels that race with admissions (G17): `make chaos WHAT=cancel`, with CANCELS."""

from collections import Counter
from pathlib import Path

import pytest

from tests.chaos.figures import amount, dice
from tests.chaos.world import Caller, World, world

CANCELS = amount("CANCELS", 5_000)
CHUNK = 200
AT_ONCE = 5
TOLD_EVERY = 20
# A heartbeat is half a second here; the machine is busy.
HEARD_SECONDS = 5.0
HISTORIES = "SELECT id::text, state, history FROM jobs_run"


@pytest.mark.chaos
def test_cancel(tmp_path: Path) -> None:
    """Cancelled before its admission a run never starts; after it, it is stopped and fenced."""
    chance = dice(CANCELS=CANCELS)
    with world(tmp_path) as scene:
        canceller = Caller(scene.installation)
        cancelled: set[str] = set()
        endless: set[str] = set()
        for start in range(0, CANCELS, CHUNK):
            size = min(CHUNK, CANCELS - start)
            # Every sixth is not cancelled: what is beside a cancelled run succeeds.
            total = size * 6 // 5
            places = chance.sample(range(total), k=size)
            calls = [{"seconds": chance.choice([0, 0.02, 0.2])} for _ in range(total)]
            for place in places[::TOLD_EVERY]:
                calls[place]["seconds"] = 600  # ends only by its cancel
            ids = scene.submit("tests.sleep", calls)
            wanted = [ids[place] for place in places]
            for first in range(0, size, AT_ONCE):
                canceller.ask("cancel", ids=wanted[first : first + AT_ONCE])
            cancelled |= set(wanted)
            endless |= set(wanted[::TOLD_EVERY])
            scene.look()
        scene.drained()
        canceller.close()
        scene.verdict()
        _judge(scene, cancelled, endless)


def _judge(scene: World, cancelled: set[str], endless: set[str]) -> None:
    """Have each run end as the moment of its cancel demands; print the counts."""
    starts = scene.look().starts
    returned = {end.run for end in scene.bodies.ended if end.outcome == "returned"}
    ways: Counter[str] = Counter()
    longest = 0.0
    for run_id, state, history in scene.installation.servers.sql(HISTORIES):
        assert isinstance(history, list)
        states = [entry[0] for entry in history]
        if run_id not in cancelled:
            assert state == "succeeded", history
        elif "admitted" not in states:
            ways["before its admission"] += 1
            assert (states, starts.get(run_id)) == (["queued", "cancelled"], None)
        elif states[-2:] == ["cancelling", "succeeded"]:
            # The body returned before the cancel reached it.
            ways["too late"] += 1
            assert run_id in returned and run_id not in endless
        elif "cancelling" in states:
            ways["at work" if run_id in starts else "at the gate"] += 1
            assert states[-2:] == ["cancelling", "cancelled"]
            longest = max(longest, history[-1][1] - history[-2][1])
        elif state == "cancelled":
            ways["given back, then cancelled"] += 1
        else:
            ways["after its end"] += 1
            assert state == "succeeded", history
    print(f"{len(cancelled)} cancels: {dict(ways)}; from word to end at most {longest:.2f} s")
    assert ways["before its admission"] > len(cancelled) / 20
    assert ways["at work"] > 0
    assert longest < HEARD_SECONDS
