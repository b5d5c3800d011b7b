"""Rules about service windows: what the judge calls outside, and what it accepts."""

from datetime import datetime, timedelta

from tests.judge.log import TaskEvent
from tests.judge.rows import AdmittedRow
from tests.judge.scene import NOON
from tests.judge.window_judge import Asked, Hours, judge_windows

RUN = "run-1"


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def hours(*spans: tuple[float, float], since: float = -60, cut_off: float = 0) -> Hours:
    """Return hours that are decided within a second."""
    return Hours(
        spans=[(at(first), at(last)) for first, last in spans],
        begins=at(since),
        sure_from=at(since + 1),
        cut_off=timedelta(seconds=cut_off),
    )


def found(
    *eras: Hours, admitted: float, started: float | None = None, needed: float = 0
) -> set[str]:
    """Judge one run of one owner; return the kinds of which something was found."""
    begun = [started] if started is not None else []
    verdict = judge_windows(
        {"acme": eras},
        asked={RUN: Asked(owner="acme", needed=timedelta(seconds=needed))},
        admissions=[AdmittedRow(run_id=RUN, token=1, at=at(admitted))],
        starts=[
            TaskEvent(event="start", position=1, pid=7, run=RUN, token=1, monotonic=moment)
            for moment in begun
        ],
        boot=NOON,
    )
    return set(verdict.findings)


def test_an_admission_belongs_inside_an_opening() -> None:
    """The first moment belongs to it, the last moment does not."""
    nights = hours((0, 3), (6, 9))
    assert [found(nights, admitted=moment) for moment in (0, 2.999, 6, 8.999)] == [set()] * 4
    for moment in (-0.001, 3.001, 5.999, 9.001):
        assert found(nights, admitted=moment) == {"admitted_outside"}


def test_a_run_must_fit_into_what_is_left() -> None:
    """With its time limit before the close, and before the cut-off."""
    assert found(hours((0, 10)), admitted=6, needed=4) == set()
    assert found(hours((0, 10)), admitted=6.001, needed=4) == {"admitted_outside"}
    assert found(hours((0, 10), cut_off=2), admitted=4.001, needed=4) == {"admitted_outside"}


def test_a_body_begins_before_the_close() -> None:
    """A start a millisecond late is outside, however the admission was."""
    assert found(hours((0, 3)), admitted=2, started=2.999) == set()
    assert found(hours((0, 3)), admitted=2, started=3.001) == {"started_late", "started_outside"}
    assert found(hours((0, 10)), admitted=5, started=6.5, needed=4) == {"started_late"}


def test_a_change_counts_from_its_commit_on() -> None:
    """During its commit either state may decide; a run admitted before may begin."""
    before, after = hours((0, 10)), hours((0, 1), (20, 30), since=4)
    assert found(before, after, admitted=3.9, started=9) == set()
    assert found(before, after, admitted=4.5, started=9) == set()
    assert found(before, after, admitted=5.1) == {"admitted_outside"}
    assert found(before, after, admitted=3.9, started=10.1) == {"started_late"}
    assert found(before, after, admitted=3.9, started=20) == {"started_late"}
    assert found(before, after, admitted=25, started=25) == set()
