"""Exactly once, at the figures of G11: `make chaos WHAT=schedules`, with SECONDS, JOBS, BEATS."""

from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from tests.chaos.editing import Editor
from tests.chaos.figures import amount, dice
from tests.chaos.scheduled import Plan, lenient_jobs, scheduled, steady_jobs

SECONDS = amount("SECONDS", 600)
JOBS = amount("JOBS", 200)
BEATS = amount("BEATS", 5)
KILLS = amount("KILLS", SECONDS // 6)
POSTGRES_KILLS = amount("POSTGRES_KILLS", max(1, SECONDS // 150))
EDITORS = 4
HEALED_SECONDS = 150
SMOOTHED = timedelta(minutes=1)
"""Smooth jobs are triggered so long after their due time at most."""


@pytest.mark.chaos
def test_schedules(tmp_path: Path) -> None:
    """Each due time has its one run, or is in one record where the policy may leave it out.

    So it is for jobs that are made, edited, paused and resumed in the seconds around their due
    times. Only what an edit meets before it was handed out may go either way.
    """
    chance = dice(
        SECONDS=SECONDS, JOBS=JOBS, BEATS=BEATS, KILLS=KILLS, POSTGRES_KILLS=POSTGRES_KILLS
    )
    editors: list[Editor] = []
    with scheduled(tmp_path, beats=BEATS) as scene:
        try:
            before = scene.recurring.moment()
            ends_at = before + timedelta(seconds=SECONDS)
            edited = JOBS // 5
            jobs = [
                *steady_jobs(JOBS * 3 // 5, ends_at=ends_at, chance=chance),
                *lenient_jobs(JOBS - JOBS * 3 // 5 - edited, ends_at=ends_at, chance=chance),
            ]
            scene.caller.ask("upsert", jobs=jobs)
            scene.recurring.made(jobs, before=before, ends_at=ends_at)
            editors += [
                Editor(
                    scene.installation,
                    name=f"edited-{number}",
                    jobs=edited // EDITORS,
                    ends_at=ends_at,
                    chance=Random(chance.random()),
                )
                for number in range(EDITORS)
            ]
            for editor in editors:
                editor.start()
            plan = Plan(seconds=SECONDS, kills=KILLS, postgres_kills=POSTGRES_KILLS)
            scene.play(plan, chance)
            for editor in editors:
                editor.end()
                scene.done += editor.done
                scene.recurring.cases |= editor.cases
            scene.recurring.settled(ends_at + SMOOTHED, seconds=HEALED_SECONDS)
            scene.look()
            print(", ".join(f"{number} {name}" for name, number in sorted(scene.done.items())))
            scene.recurring.verdict()
        finally:
            for editor in editors:
                editor.stop()
