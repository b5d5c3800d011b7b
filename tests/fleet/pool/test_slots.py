"""fleet/pool/slots.py: short jobs wait in the pool beyond its slots."""

import pytest
from kombu.asynchronous.semaphore import LaxBoundedSemaphore

from fleet.pool.job import Job
from fleet.pool.slots import MAX_AHEAD, SHORT_SECONDS, Slots


def job(seconds: float) -> Job:
    return Job(
        packet=b"",
        expected=seconds,
        correlation_id=None,
        soft_limit=None,
        hard_limit=None,
        on_accept=None,
        on_value=None,
        on_error=None,
        on_limit=None,
    )


@pytest.mark.parametrize(
    ("seconds", "most_jobs", "count"),
    [
        (0.0001, None, 2 * MAX_AHEAD + 1),
        (0.0001, 1_000, 2 * MAX_AHEAD + 1),
        (0.0001, 3, 5),
        (0.0001, 1, 2),
        (SHORT_SECONDS, None, 9),
        (2 * SHORT_SECONDS, None, 2),
    ],
    ids=["short", "recycled late", "recycled soon", "recycled each time", "longer", "long"],
)
def test_so_many_jobs_are_in_a_pool_of_two_processes(
    seconds: float, most_jobs: int | None, count: int
) -> None:
    """At least one for each process; of short ones more, but none waits for two new processes."""
    semaphore = LaxBoundedSemaphore(2)
    slots = Slots(semaphore, children=2, most_jobs=most_jobs)
    jobs = []
    while semaphore.value:
        semaphore.acquire(lambda: None)
        jobs.append(job(seconds))
        slots.take(jobs[-1])
        slots.lend(jobs[-1])
    assert len(jobs) == count
    for each in jobs:
        slots.end(each)
    assert semaphore.value == 2
