"""Old history goes while runs go on and its process is killed: `make chaos WHAT=retention`.

With RUNS (old ones) and KILLS of the system worker. What must stay is computed here, from what was
put in (`tests/chaos/long_ago.py`). A reader looks all the time whether it is there.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from fleet.crash_points import KNOWN
from tests.chaos.figures import amount, dice, spread
from tests.chaos.long_ago import Old, archived, as_sql, is_same, must_stay, old_runs
from tests.chaos.world import World, world
from tests.waiting import wait_for

RUNS = amount("RUNS", 50_000)
KILLS = amount("KILLS", 20)
SHORT_RUNS = 3_000
SHORT_KILLS = 3
CHUNK = 5_000
FAULTS = [f"{name}:2" for name in KNOWN if name.startswith("retention.")]
SET_UP = """
from datetime import datetime, timedelta
from jobs.models import Owner
from jobs.system.partitions import make_day
from django_celery_beat.models import IntervalSchedule

Owner.objects.filter(slug="globex").update(run_days=200)
IntervalSchedule.objects.filter(every=600, period="seconds").update(every=1)
for days in {days}:
    make_day(datetime.fromisoformat("{today}") - timedelta(days=days))
"""
GAPS = """
SELECT count(*) FROM judge_stays s WHERE NOT EXISTS (SELECT FROM jobs_run r WHERE r.id = s.id)
"""
OPEN = "SELECT count(*) FROM jobs_run WHERE ended_at IS NULL AND state <> 'held'"
OLD_LEFT = "SELECT id::text FROM jobs_run WHERE id < '{first}'"
ATTEMPTS_LEFT = "SELECT run_id::text FROM jobs_attempt WHERE run_id < '{first}'"
LEFT_TABLES = (
    "SELECT relname FROM pg_class WHERE relname ~ '^jobs_(run|attempt|log)_(aside|.*_gone)$'"
)


@pytest.mark.parametrize(
    ("runs", "kills", "every"),
    [
        pytest.param(SHORT_RUNS, SHORT_KILLS, 24, marks=pytest.mark.proof, id="short"),
        pytest.param(RUNS, KILLS, 3, id="long", marks=pytest.mark.chaos),
    ],
)
def test_retention(tmp_path: Path, runs: int, kills: int, every: int) -> None:
    """All that must stay is there at every moment; all else goes, and is in the archive."""
    chance = dice(RUNS=runs, KILLS=kills)
    (tmp_path / "archive").mkdir()
    (tmp_path / "once").mkdir()
    environ: dict[str, Any] = {
        "FAIRSHIFT_ARCHIVE_FOLDER": str(tmp_path / "archive"),
        "FAULT": ",".join(FAULTS),
        "FAULT_ONCE_DIR": str(tmp_path / "once"),
    }
    with world(tmp_path, workers=("one",), begins=False, **environ) as scene:
        today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        old = _put_in(scene, runs, today=today, days=list(range(60, 320, every)), chance=chance)
        stays = must_stay(old, today=today)
        began_at = time.monotonic()
        with _watched(scene, stays) as reads:
            retried = _killed(scene, old, stays, kills=kills, chance=chance)
            left = stays | retried
            wait_for(
                lambda: _old(scene, OLD_LEFT, today) <= left,
                seconds=240,
                what="what is old to go",
            )
        took = time.monotonic() - began_at
        assert _old(scene, OLD_LEFT, today) == left
        wait_for(lambda: not scene.installation.count(OPEN), seconds=60, what="runs to end")
        with_attempts = {run.id for run in old if run.ended_at}
        wait_for(
            lambda: _old(scene, ATTEMPTS_LEFT, today) - retried == (left - retried) & with_attempts,
            seconds=60,
            what="attempts to go",
        )
        lines, figures = archived(tmp_path / "archive")
        by_id = {run.id: run for run in old}
        assert set(lines) >= set(by_id) - left
        assert all(is_same(lines[key][0], by_id[key]) for key in set(by_id) - left)
        wait_for(lambda: not scene.installation.servers.sql(LEFT_TABLES), seconds=30)
        assert len(list((tmp_path / "once").iterdir())) == len(FAULTS)
        again = sum(map(len, lines.values())) - len(lines)
        print(
            f"{runs:,} old runs, {len(left):,} stayed, of them {len(retried)} retried; "
            f"{took:.0f} s; {figures['files']} files of {figures['bytes']:,} bytes, "
            f"{again} lines twice; a reader of all that stays, {len(reads)} times: {spread(reads)}"
        )


def _put_in(
    scene: World, number: int, *, today: datetime, days: list[int], chance: Random
) -> list[Old]:
    installation = scene.installation
    code = SET_UP.format(days=days, today=today.isoformat())
    installation.run(code)
    rows = installation.servers.sql("SELECT slug, id FROM jobs_owner")
    owners = {str(slug): int(str(key)) for slug, key in rows}
    old = old_runs(number, today=today, days=days, chance=chance)
    for start in range(0, number, CHUNK):
        installation.servers.sql(as_sql(old[start : start + CHUNK], owners))
    return old


def _killed(
    scene: World, old: list[Old], stays: set[str], *, kills: int, chance: Random
) -> set[str]:
    """Kill the system worker again and again; submit, and retry old runs; return those retried."""
    retryable = [run.id for run in old if run.state in ("failed", "cancelled", "expired")]
    retried: set[str] = set()
    for _ in range(kills):
        scene.records(20, seconds=0.01)
        moved = scene.caller.ask("retry", ids=chance.sample(retryable, k=3))["ids"]
        retried |= set(moved)
        if moved:
            values = ", ".join(f"('{key}')" for key in moved)
            scene.installation.servers.sql(f"INSERT INTO judge_stays VALUES {values}")
        time.sleep(chance.uniform(0.2, 2.5))  # a round begins each second, once it is up
        scene.replace("system")
    return retried


@contextmanager
def _watched(scene: World, stays: set[str]) -> Iterator[list[float]]:
    """Put the rule for retention in force, and look all the time for a run that is missing."""
    servers = scene.installation.servers
    values = ", ".join(f"('{key}')" for key in stays)
    servers.sql(
        f"CREATE TABLE judge_stays (id) AS SELECT id::uuid FROM (VALUES {values}) AS v (id)"
    )
    servers.sql("ANALYZE jobs_run")
    scene.begin()
    seconds: list[float] = []
    gaps: list[int] = []
    is_over = threading.Event()

    def look() -> None:
        with psycopg.connect(servers.postgres.url, autocommit=True) as reader:
            while not is_over.wait(0.15):
                began_at = time.monotonic()
                [(missing,)] = reader.execute(GAPS).fetchall()
                seconds.append(time.monotonic() - began_at)
                gaps.append(missing)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seconds
    finally:
        is_over.set()
        thread.join()
    assert gaps and not any(gaps), f"{max(gaps, default=0)} runs were missing"


def _old(scene: World, query: str, today: datetime) -> set[str]:
    first = f"{int(today.timestamp() * 1000) - 50 * 86_400_000:012x}".ljust(32, "0")
    return {str(key) for (key,) in scene.installation.servers.sql(query.format(first=first))}
