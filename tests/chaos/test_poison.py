"""Runs that kill their process (G7): `make chaos WHAT=poison`, with ROUNDS and SECONDS."""

import time
from collections import Counter
from pathlib import Path
from statistics import median

import pytest

from tests.chaos.figures import amount, dice
from tests.chaos.tasks import POISONS
from tests.chaos.world import World, world

ROUNDS = amount("ROUNDS", 6)
SECONDS = amount("SECONDS", 15)
ATTEMPTS = 3
WAITING = 400
LIMITS = {"soft_time_limit_seconds": 0.2, "time_limit_seconds": 0.5}
ENDS = """
SELECT r.state, r.attempt_count, a.outcome FROM jobs_run r
JOIN jobs_owner o ON o.id = r.owner_id JOIN jobs_attempt a ON a.run_id = r.id AND a.token = r.token
WHERE o.slug = 'acme'
"""


@pytest.mark.chaos
def test_poison(tmp_path: Path) -> None:
    """It starts as often as its attempts allow and ends as lost; others run nearly as before."""
    dice(ROUNDS=ROUNDS, SECONDS=SECONDS)
    rates: dict[bool, list[float]] = {False: [], True: []}
    with world(tmp_path, FAIRSHIFT_LEASE_SECONDS="10") as scene:
        poisoned: list[str] = []
        for number in range(2 * ROUNDS):
            has_poison = number % 2 == 1
            rates[has_poison].append(_work(scene, poisoned if has_poison else None))
        scene.drained()
        starts = scene.look().starts
        most = max(len(starts[run_id]) for run_id in poisoned)
        share = median(rates[True]) / median(rates[False])
        print(
            f"{len(poisoned)} poisoned runs, each started at most {most} times; others: "
            f"{median(rates[False]):.0f} a second alone, {median(rates[True]):.0f} beside them "
            f"({share:.0%})"
        )
        ends = Counter(scene.installation.servers.sql(ENDS))
        print(dict(ends))
        scene.verdict()
        assert len(poisoned) >= len(POISONS)
        assert {(state, count) for state, count, _ in ends} == {("failed", ATTEMPTS)}
        assert {outcome for _, _, outcome in ends} <= {"child lost", "time limit"}
        assert most == ATTEMPTS
        assert share >= 0.8


def _work(scene: World, poisoned: list[str] | None) -> float:
    """Keep others busy while one poisoned run follows the other; return the others' rate."""
    _feed(scene)
    began_at, before = time.monotonic(), len(scene.look().ended)
    while time.monotonic() - began_at < SECONDS:
        _feed(scene)
        if poisoned is not None and not (poisoned and _is_open(scene, poisoned[-1])):
            way = list(POISONS)[len(poisoned) % len(POISONS)]
            limits = LIMITS if way == "endless" else {}
            options = {"max_attempts": ATTEMPTS, "backoff_cap_seconds": 0.1, **limits}
            poisoned += scene.submit("chaos.poison", [{"way": way}], owner="acme", **options)
        time.sleep(0.05)
    return (len(scene.look().ended) - before) / (time.monotonic() - began_at)


def _feed(scene: World) -> None:
    if scene.open_count() < WAITING // 2:
        scene.records(WAITING, seconds=0.05, owner="globex")


def _is_open(scene: World, run_id: str) -> bool:
    query = "SELECT count(*) FROM jobs_run WHERE id = '{}' AND ended_at IS NULL"
    return scene.installation.count(query.format(run_id)) > 0
