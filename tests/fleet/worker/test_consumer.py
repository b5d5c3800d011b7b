"""fleet/worker/consumer.py: what a lost connection takes along of a worker's timer."""

from types import SimpleNamespace
from typing import Any

from celery.worker.request import Request
from kombu.asynchronous.timer import Timer

from fleet.worker.consumer import cancel_entries_of_connection, timer_entries


def later(timer: Timer, *arguments: Any) -> Any:
    return timer.call_after(60.0, print, arguments)


def test_only_what_the_connection_has_added_ends_with_it() -> None:
    """Not what was there before, nor a time limit that began since; but messages with an ETA."""
    timer = Timer()
    heartbeat = later(timer)
    before = timer_entries(timer)
    of_connection = later(timer)
    registered = timer_entries(timer) - before
    limit, message = later(timer, 7), later(timer, Request.__new__(Request))
    cancel_entries_of_connection(
        SimpleNamespace(
            timer=timer, timer_entries_before_start=before, timer_entries_registered=registered
        )
    )
    assert not heartbeat.canceled and not limit.canceled
    assert of_connection.canceled and message.canceled
