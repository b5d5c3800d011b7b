"""The owners' parts that the demo shows, from two looks at the queues."""

from dataclasses import replace

from config.demo.screen import Part
from config.demo.shares import parts_of
from tests.fleet.test_sight import BUSY, look


def test_a_part_has_what_ended_between_two_looks() -> None:
    """Entitled is by weight among those that have work; received is worker time of that span."""
    acme = replace(BUSY, weight=1, backlog=4, running=0)
    globex = replace(BUSY, name="globex", weight=3, backlog=90, running=6)
    before = look(replace(acme, worker_seconds=10), replace(globex, worker_seconds=100))
    now = look(replace(acme, worker_seconds=11), replace(globex, worker_seconds=103))
    assert parts_of(now, since=before) == [
        Part("acme", entitled=0.25, received=0.25, waiting=4, running=0),
        Part("globex", entitled=0.75, received=0.75, waiting=90, running=6),
    ]


def test_where_nobody_is_entitled_there_is_nothing_to_compare() -> None:
    """What ended just now was received by an owner of whom nothing is left."""
    before = look(replace(BUSY, backlog=0, running=0, worker_seconds=10))
    now = look(replace(BUSY, backlog=0, running=0, worker_seconds=12))
    assert parts_of(now, since=before) == []
