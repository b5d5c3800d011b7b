"""jobs/recurring/due.py: the jobs that are due in some slots, and no others."""

from datetime import timedelta
from typing import Any

import pytest

from jobs.models import Job, Owner
from jobs.recurring.due import due_jobs
from jobs.schedules import moment_of, slot_of
from tests.jobs.recurring.scenes import MINUTE, NOON, at, recurring


def due_times(job: Job, *, hours: float = 1, step: int = 121) -> list[Any]:
    """Return when a job is due after noon, asked for in steps of some slots."""
    first, end = slot_of(NOON), slot_of(NOON + timedelta(hours=hours))
    found = []
    for start in range(first, end, step):
        found += due_jobs(start, min(start + step, end))
    return [moment_of(each.slot) for each in found if each.job_id == job.id]


def test_an_interval_is_due_at_its_phase_and_shard(acme: Owner) -> None:
    """Once in each interval, half-second by half-second, however the slots are cut."""
    job = recurring(acme, interval_minutes=15, phase=4, shard=33)
    recurring(acme, interval_minutes=15, phase=3, shard=33, enabled=False)
    expected = [at(4 + 15 * n, seconds=16.5) for n in range(4)]
    assert due_times(job) == expected
    assert due_times(job, hours=0.35, step=7) == expected[:2]


def test_many_intervals_are_found_each_in_its_own_slot(acme: Owner) -> None:
    """Of any length, also when a span touches two minutes."""
    lengths = [1, 2, 7, 60, 1440]
    jobs = [
        recurring(acme, interval_minutes=n, phase=MINUTE % n, shard=119 - place)
        for place, n in enumerate(lengths)
    ]
    jobs += [recurring(acme, interval_minutes=1, phase=0, shard=1)]
    found = due_jobs(MINUTE * 120 + 115, MINUTE * 120 + 122)
    slots = {
        job.id: [it.slot - MINUTE * 120 for it in found if it.job_id == job.id] for job in jobs
    }
    assert list(slots.values()) == [[119], [118], [117], [116], [115], [121]]


def test_cron_is_due_in_the_first_slot_of_its_minute_in_its_zone(acme: Owner) -> None:
    """13:00 in Berlin is noon in winter; nobody else's expression is touched."""
    berlin = recurring(acme, schedule="cron", cron="0,30 13 * * *", zone="Europe/Berlin")
    utc = recurring(acme, schedule="cron", cron="0,30 13 * * *")
    assert due_times(berlin) == [at(0), at(30)]
    assert due_times(utc) == []


def test_smooth_moves_the_slot_and_not_the_due_time(acme: Owner) -> None:
    """It is triggered at its shard; what is due is the minute."""
    cron = recurring(acme, schedule="cron", cron="5 12 * * *", smooth=True, shard=90)
    once = recurring(acme, schedule="once", once_at=at(5), smooth=True, shard=91)
    first = (MINUTE + 5) * 120
    assert due_jobs(first, first + 90) == []
    found = due_jobs(first + 90, first + 120)
    assert [(it.job_id, it.slot) for it in found] == [(cron.id, first), (once.id, first)]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"start_at": at(2)}, [2, 3, 4]),
        ({"end_at": at(2)}, [0, 1, 2]),
        ({"effective_from": at(1, seconds=0.1)}, [2, 3, 4]),
        ({"effective_from": at(1)}, [1, 2, 3, 4]),
        ({"paused_until": at(3)}, [3, 4]),
        ({"enabled": False}, []),
        ({"start_at": at(1), "end_at": at(3), "paused_until": at(2)}, [2, 3]),
    ],
)
@pytest.mark.parametrize("schedule", ["interval", "cron"])
def test_a_due_time_counts_between_its_bounds(
    acme: Owner, schedule: str, fields: dict[str, Any], expected: list[int]
) -> None:
    """Both ends count, and so does the moment at which a pause or its being off ends."""
    job = recurring(
        acme, schedule=schedule, cron="* * * * *" if schedule == "cron" else "", **fields
    )
    assert due_times(job, hours=1 / 12) == [at(minute) for minute in expected]


def test_once_outside_of_its_bounds_is_not_due(acme: Owner) -> None:
    """Created after its time, switched off, paused."""
    for fields in ({"effective_from": at(8)}, {"enabled": False}, {"paused_until": at(8)}):
        recurring(acme, schedule="once", once_at=at(7), **fields)
    first = (MINUTE + 7) * 120
    assert due_jobs(first, first + 120) == []
