"""fleet/beat/signals.py: a signal to stop waits for the end of a block."""

import signal
import threading
from collections.abc import Iterator

import pytest

from fleet.beat.signals import deferred_signals


class StopError(Exception):
    """The signal's handler has raised."""


def stop(_number: int, _frame: object) -> None:
    raise StopError


@pytest.fixture(autouse=True)
def _handler() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, stop)
    yield
    signal.signal(signal.SIGTERM, before)


def test_a_signal_comes_after_the_block() -> None:
    """Once, to the handler that was there before."""
    steps = []

    def act() -> None:
        with deferred_signals():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
            steps.append("the act and its note")

    with pytest.raises(StopError):
        act()
    assert steps and signal.getsignal(signal.SIGTERM) is stop


def test_another_thread_has_no_signals() -> None:
    """Nothing is changed there: a beat inside of a worker runs in one."""
    seen = []

    def within() -> None:
        with deferred_signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=within)
    thread.start()
    thread.join()
    assert seen == [stop]
