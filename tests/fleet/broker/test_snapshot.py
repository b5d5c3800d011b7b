"""fleet/broker/snapshot.py: shares by weight among owners with work, and by worker time."""

from dataclasses import replace

import pytest

from fleet.broker.snapshot import OwnerSnapshot, OwnerState, Snapshot, merged

IDLE = OwnerSnapshot(
    name="acme",
    weight=3,
    max_running=None,
    is_paused=False,
    rate=None,
    backlog=0,
    running=0,
    finished_count=0,
    worker_seconds=0,
    is_eligible=False,
    oldest_wait_seconds=None,
    rest_seconds=None,
)
BUSY = replace(IDLE, backlog=5, running=2)


def snapshot(*owners: OwnerSnapshot, at: float = 0.0) -> Snapshot:
    return Snapshot(at, {owner.name: owner for owner in owners})


def test_who_has_work_is_entitled_by_weight() -> None:
    """An owner without work, or paused with nothing running, leaves its share to the others."""
    northwind = replace(BUSY, name="northwind", weight=1)
    others = [
        replace(IDLE, name="idle", weight=100),
        replace(BUSY, name="paused", weight=100, running=0, is_paused=True),
    ]
    assert snapshot(BUSY, northwind, *others).entitled() == {
        "acme": 0.75,
        "northwind": 0.25,
        "idle": 0,
        "paused": 0,
    }
    ending = replace(northwind, backlog=0, is_paused=True)
    assert snapshot(BUSY, ending).entitled() == {"acme": 0.75, "northwind": 0.25}
    assert snapshot(IDLE).entitled() == {"acme": 0}


def test_what_is_received_is_a_matter_of_a_span() -> None:
    """Worker time that ended in the span; a new owner, or one after a flush, counts from 0."""
    northwind = replace(BUSY, name="northwind", worker_seconds=90)
    before = snapshot(replace(BUSY, worker_seconds=10), northwind)
    after = snapshot(
        replace(BUSY, worker_seconds=16),
        replace(northwind, worker_seconds=1),
        replace(BUSY, name="new", worker_seconds=3),
    )
    assert after.received(since=before) == {"acme": 0.6, "northwind": 0.1, "new": 0.3}
    assert after.received() == {"acme": 0.8, "northwind": 0.05, "new": 0.15}
    assert before.received(since=before) == {"acme": 0, "northwind": 0}


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({}, OwnerState.ELIGIBLE),
        ({"max_running": 3}, OwnerState.ELIGIBLE),
        ({"max_running": 2}, OwnerState.AT_CAP),
        ({"max_running": 1}, OwnerState.AT_CAP),
        ({"rest_seconds": 0.5}, OwnerState.RESTING),
        ({"is_paused": True, "max_running": 2}, OwnerState.PAUSED),
        ({"backlog": 0}, OwnerState.IDLE),
        ({"backlog": 0, "max_running": 2}, OwnerState.AT_CAP),
    ],
)
def test_why_an_owner_is_not_chosen(facts: dict[str, object], state: OwnerState) -> None:
    """The first reason: the operator's pause, the cap, the rate, no work."""
    assert replace(BUSY, **facts).state is state  # type: ignore[arg-type]


def test_several_queues_are_seen_together() -> None:
    """Counts are added, of waits the longest is taken."""
    one = replace(BUSY, worker_seconds=1, oldest_wait_seconds=2, is_eligible=True)
    other = replace(BUSY, worker_seconds=2, oldest_wait_seconds=1, finished_count=4)
    stranger = replace(IDLE, name="stranger")
    assert merged([one, stranger, other]) == {
        "acme": replace(
            BUSY,
            backlog=10,
            running=4,
            worker_seconds=3,
            finished_count=4,
            oldest_wait_seconds=2,
            is_eligible=True,
        ),
        "stranger": stranger,
    }
