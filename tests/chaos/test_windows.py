"""Service windows while workers die and calendars change (G14): `make chaos WHAT=windows`."""

import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.chaos.figures import amount, dice
from tests.chaos.world import World, world
from tests.flows.windowed import ZONES, Windowed

RUNS = amount("RUNS", 3_000)
KILLS = amount("KILLS", 12)
EDITS = amount("EDITS", 60)
FLUSHES = amount("FLUSHES", 3)
OWNERS = 12
NEVER_CHANGED = 4
UNFIT = 2
"""So many runs of each owner take longer than any of its openings."""
OPENINGS = 200
KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"cut_off_seconds": 1},
    {"spread_seconds": 1},
    {"end": "hard"},
    {"end": "soft"},
    {},
)
STEP_SECONDS = 3.0
"""So long an edit waits for runs to end: after some edits none can."""
END_SECONDS = 300.0
ENDED = "SELECT count(*) FROM jobs_run WHERE ended_at IS NOT NULL"
# What a change takes the window from while it runs is stopped, where the calendar says so.
STOPPED = """
SELECT count(*) FROM jobs_run r
JOIN jobs_calendar c ON c.owner_id = r.owner_id AND c."end" <> 'let run'
WHERE r.state = 'cancelled' AND r.history::text LIKE '%window closed%'
"""
TAKEN_BACK = """
SELECT count(*) FROM jobs_run r, jsonb_array_elements(r.history) AS m (move)
WHERE m.move ->> 0 = 'held' AND m.move ->> 2 = 'window closed'
"""
STILL_OPEN = "SELECT state, count(*) FROM jobs_run WHERE ended_at IS NULL GROUP BY state"


class Customers:
    """Owners whose windows are open 3 seconds and shut 3, and changes to some of them."""

    def __init__(self, scene: World, chance: Random) -> None:
        self.scene, self._chance = scene, chance
        self.windowed = Windowed(
            lambda act, facts: scene.caller.ask("calendar", act=act, facts=facts)
        )
        self.unfit: list[str] = []
        self.done: Counter[str] = Counter()

    def agree(self) -> None:
        """Have all of them, each with a phase of its own."""
        now = datetime.now(UTC)
        for number in range(OWNERS):
            self.windowed.agree(
                f"customer-{number}",
                first=now + timedelta(seconds=1 + 6 * number / OWNERS),
                count=OPENINGS,
                zone=ZONES[number % len(ZONES)],
                **KINDS[number % len(KINDS)],
            )

    def submit(self) -> None:
        """Submit more of each than fit into one opening: most may take any time, some a second."""
        for number, owner in enumerate(self.windowed.customers):
            share = RUNS // OWNERS - UNFIT
            limited = share // 6
            self._submit(owner, share - limited, most_seconds=0.4)
            self._submit(owner, limited, most_seconds=0.2, time_limit=1)
            self.unfit += self._submit(owner, UNFIT, most_seconds=0.1, time_limit=4 + number)

    def _submit(
        self, owner: str, count: int, *, most_seconds: float, time_limit: int = 0
    ) -> list[str]:
        spans = [round(self._chance.uniform(0.02, most_seconds), 2) for _ in range(count)]
        calls = [{"n": n, "seconds": seconds} for n, seconds in enumerate(spans)]
        limit = {"time_limit_seconds": time_limit} if time_limit else {}
        ids = self.scene.submit("tests.record", calls, owner=owner, **limit)
        self.windowed.submitted(owner, ids, needed=time_limit)
        return ids

    def acts(self) -> list[Callable[[], None]]:
        """Return the disturbances, in a random order."""
        edits = [self._shorten, self._move, self._freeze, self._revoke]
        acts: list[Callable[[], None]] = [edits[number % len(edits)] for number in range(EDITS)]
        acts += [self._kill] * KILLS + [self._flush] * FLUSHES
        self._chance.shuffle(acts)
        return acts

    def settle(self) -> None:
        """Make all windows long enough again, and lift all freezes."""
        for owner in self._changing:
            self.windowed.shift(owner, seconds=3)
            self.windowed.thaw(owner)

    @property
    def _changing(self) -> list[str]:
        return list(self.windowed.customers)[NEVER_CHANGED:]

    def _shorten(self) -> None:
        self.windowed.shift(
            self._chance.choice(self._changing), seconds=self._chance.choice([1, 2, 3])
        )

    def _move(self) -> None:
        owner = self._chance.choice(self._changing)
        self.windowed.shift(owner, by=self._chance.uniform(-2, 2))

    def _freeze(self) -> None:
        self.windowed.freeze(
            self._chance.choice(self._changing), seconds=self._chance.choice([3, 5])
        )

    def _revoke(self) -> None:
        owner = self._chance.choice(self._changing)
        self.windowed.revoke(owner)
        time.sleep(self._chance.uniform(0.1, 2))  # until it is approved again
        self.windowed.approve(owner)

    def _kill(self) -> None:
        self.scene.replace(self._chance.choice(self.scene.workers))

    def _flush(self) -> None:
        self.scene.installation.servers.client().flushall()


@pytest.mark.chaos
def test_windows(tmp_path: Path) -> None:
    """Nothing is admitted and nothing begins while it is closed, whoever dies or edits when.

    What fits into an opening succeeds in the end, or is stopped with its window; what fits into
    none is held, and never starts.
    """
    chance = dice(RUNS=RUNS, KILLS=KILLS, EDITS=EDITS, FLUSHES=FLUSHES)
    with world(tmp_path, slots=6) as scene:
        customers = Customers(scene, chance)
        customers.agree()
        customers.submit()
        fit = len(customers.windowed.asked) - len(customers.unfit)
        acts = customers.acts()
        for number, act in enumerate(acts, start=1):
            _ended(scene, number * fit // (len(acts) + 1), seconds=STEP_SECONDS)
            act()
            customers.done[act.__name__.strip("_")] += 1
        customers.settle()
        assert _ended(scene, fit, seconds=END_SECONDS), scene.states()
        open_still = scene.installation.servers.sql(STILL_OPEN)
        stopped = scene.installation.count(STOPPED)
        taken_back = scene.installation.count(TAKEN_BACK)
        scene.caller.ask("cancel", ids=customers.unfit)
        print(
            dict(customers.done),
            f"{taken_back} times held for a close or a change, {stopped} stopped",
        )
        customers.windowed.verdict(scene.installation.servers.postgres.url, scene.log.path)
        scene.verdict()
        assert open_still == [("held", len(customers.unfit))]
        cancelled = stopped + len(customers.unfit)
        assert scene.states() == {"succeeded": fit - stopped, "cancelled": cancelled}


def _ended(scene: World, count: int, *, seconds: float) -> bool:
    """Wait until this many runs have ended; return whether they have in time."""
    ends_at = time.monotonic() + seconds
    while (is_short := scene.installation.count(ENDED) < count) and time.monotonic() < ends_at:
        scene.look()
        time.sleep(0.05)
    return not is_short
