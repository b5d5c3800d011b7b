"""Cores that jobs share, on times that can be checked by hand."""

import pytest

from tests.benchmarks.scale.cores import LOW, Clock, Cores, Thread


class Ends:
    """When each job has ended, by its name."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.at: dict[str, float] = {}

    def note(self, name: str) -> None:
        self.at[name] = round(self._clock.now, 9)

    def all(self) -> dict[str, float]:
        while self._clock.step():
            pass
        return self.at


def test_two_jobs_share_one_core() -> None:
    """A job of 1 s and one of 2 s have half of it each, until the first has ended."""
    clock = Clock()
    cores, ends = Cores(clock, 1), Ends(clock)
    cores.run(1.0, lambda: ends.note("short"))
    cores.run(2.0, lambda: ends.note("long"))
    assert ends.all() == {"short": 2.0, "long": 3.0}
    assert cores.work == cores.busy == 3.0


def test_a_job_has_one_core_at_most() -> None:
    """Two jobs on four cores take as long as each alone."""
    clock = Clock()
    cores, ends = Cores(clock, 4), Ends(clock)
    cores.run(1.0, lambda: ends.note("one"))
    cores.run(1.0, lambda: ends.note("two"))
    assert ends.all() == {"one": 1.0, "two": 1.0}


def test_a_job_that_comes_later_slows_down_the_first() -> None:
    """It had the core alone for half a second."""
    clock = Clock()
    cores, ends = Cores(clock, 1), Ends(clock)
    cores.run(1.0, lambda: ends.note("first"))
    clock.after(0.5, lambda: cores.run(1.0, lambda: ends.note("later")))
    assert ends.all() == {"first": 1.5, "later": 2.0}


def test_a_low_job_gets_a_small_part() -> None:
    """Beside a high one, LOW of what that has; on a free core, all of it."""
    clock = Clock()
    cores, ends = Cores(clock, 1), Ends(clock)
    cores.run(1.0, lambda: ends.note("low"), is_low=True)
    cores.run(1.0, lambda: ends.note("high"))
    assert ends.all() == {"high": round(1 + LOW, 9), "low": 2.0}

    clock = Clock()
    cores, ends = Cores(clock, 2), Ends(clock)
    cores.run(1.0, lambda: ends.note("low"), is_low=True)
    cores.run(1.0, lambda: ends.note("high"))
    assert ends.all() == {"high": 1.0, "low": 1.0}


def test_a_core_is_slower_while_the_others_are_busy() -> None:
    """With the part 0.5: one job alone loses nothing, one beside another a half."""
    clock = Clock()
    cores, ends = Cores(clock, 2, crowding=0.5), Ends(clock)
    cores.run(1.0, lambda: ends.note("short"))
    cores.run(2.0, lambda: ends.note("long"))
    assert ends.all() == {"short": 2.0, "long": 3.0}
    assert (cores.work, cores.busy) == (3.0, 5.0)


def test_a_thread_that_sleeps_is_woken() -> None:
    """The first of two jobs that come together pays for it."""
    clock = Clock()
    cores, ends = Cores(clock, 1), Ends(clock)
    thread = Thread(cores, wake=0.5)
    assert thread.run(1.0, lambda: ends.note("one")) == 1.5
    assert thread.run(1.0, lambda: ends.note("two")) == 1.0
    assert ends.all() == {"one": 1.5, "two": 2.5}
    assert thread.run(1.0, lambda: ends.note("three")) == pytest.approx(1.5)
    assert thread.wakes == 2


def test_jobs_of_a_thread_follow_one_another() -> None:
    """Also while cores are free; a job of another thread runs beside them."""
    clock = Clock()
    cores, ends = Cores(clock, 4), Ends(clock)
    thread, other = Thread(cores), Thread(cores)
    thread.run(1.0, lambda: ends.note("one"))
    thread.run(1.0, lambda: ends.note("two"))
    other.run(1.5, lambda: ends.note("other"))
    assert ends.all() == {"one": 1.0, "other": 1.5, "two": 2.0}
