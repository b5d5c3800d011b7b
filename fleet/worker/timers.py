"""What a lost connection takes along of a worker's timer: its own entries, as in Celery 5.7.

Before 5.7 Celery clears the whole timer, with the time limits of running tasks and our heartbeat.
"""

from __future__ import annotations

from typing import Any

from celery.worker.request import Request


def timer_entries(timer: Any) -> set[Any]:
    """Return the entries of a timer."""
    return {scheduled.entry for scheduled in timer.queue}


def cancel_entries_of_connection(consumer: Any) -> None:
    """Cancel the timer entries of a consumer's connection, and those of messages with an ETA.

    The broker delivers such messages again. Called in place of the `clear` of the worker's timer.
    """
    present = timer_entries(consumer.timer)
    added = consumer.timer_entries_registered
    if added is None:  # lost before the loop began
        added = present - (consumer.timer_entries_before_start or set())
    for entry in added | {each for each in present if _is_of_message(each)}:
        consumer.timer.cancel(entry)


def _is_of_message(entry: Any) -> bool:
    return bool(entry.args) and isinstance(entry.args[0], Request)
