"""The owners' parts that the demo shows, from two snapshots of the queues."""

from dataclasses import replace

from config.demo.screen import Part
from config.demo.shares import entitled_now, parts_of
from tests.fleet.broker.test_snapshot import BUSY, snapshot

ACME = replace(BUSY, weight=1, backlog=4, running=2)
GLOBEX = replace(BUSY, name="globex", weight=3, backlog=90, running=6)


def test_a_part_has_what_ended_between_two_looks() -> None:
    """Entitled is by weight among those that have work; received is worker time of that span."""
    before = snapshot(replace(ACME, worker_seconds=10), replace(GLOBEX, worker_seconds=100))
    now = snapshot(replace(ACME, worker_seconds=11), replace(GLOBEX, worker_seconds=103), at=2.0)
    assert parts_of([before, now]) == [
        Part("acme", entitled=0.25, received=0.25, waiting=4, running=2),
        Part("globex", entitled=0.75, received=0.75, waiting=90, running=6),
    ]


def test_an_owner_is_entitled_to_no_more_than_it_asks_for() -> None:
    """Without backlog it counts with its running work; the others share the rest by weight."""
    small = replace(ACME, backlog=0, running=1)
    equal = replace(GLOBEX, weight=1, running=14)
    other = replace(equal, name="initech", running=1)
    assert entitled_now(snapshot(small, equal, other)) == {
        "acme": 0.0625,
        "globex": 0.46875,
        "initech": 0.46875,
    }
    assert entitled_now(snapshot(small)) == {"acme": 1.0}
