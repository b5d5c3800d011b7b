"""Rules about schedules: each due time has one run or lies in one record."""

from datetime import UTC, datetime, timedelta

from tests.judge.rows import MissedRow, Rule, TriggeredRow
from tests.judge.schedules import Case, Era, judge_schedules
from tests.judge.verdict import Verdict

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
EACH_MINUTE = Rule(schedule="interval", interval_minutes=1, phase=0, shard=20)
DUE = [NOON + timedelta(seconds=10 + 60 * number) for number in range(5)]


def era(rule: Rule = EACH_MINUTE, *, is_paused: bool = False, sure: int = 5) -> Era:
    """Five minutes from noon on, of which `sure` are sure."""
    end = NOON + timedelta(minutes=5)
    return Era(
        rule=rule,
        begins=NOON,
        sure_from=NOON,
        sure_until=NOON + timedelta(minutes=sure),
        ends=end,
        is_paused=is_paused,
    )


def judged(
    runs: list[datetime],
    *records: tuple[int, int, int, str],
    eras: tuple[Era, ...] = (era(),),
    reasons: frozenset[str] = frozenset({"outage", "paused"}),
) -> Verdict:
    """Judge these runs, and records of due times by the numbers of their first and last."""
    rows = [TriggeredRow(key="a", run_id=str(n), due_at=due) for n, due in enumerate(runs)]
    missed = [
        MissedRow(key="a", first_at=DUE[first], last_at=DUE[last], count=count, reason=reason)
        for first, last, count, reason in records
    ]
    return judge_schedules({"a": Case(eras, reasons)}, triggered=rows, missed=missed)


def found(verdict: Verdict) -> set[str]:
    return set(verdict.findings)


def test_each_due_time_has_its_run() -> None:
    """All of them and nothing else is clean; one less, one more, one twice is not."""
    assert judged(DUE).ok
    assert found(judged(DUE[1:])) == {"unaccounted"}
    assert found(judged([*DUE, DUE[0] + SECOND])) == {"not_due"}
    assert found(judged([*DUE, DUE[0]])) == {"due_twice"}


def test_a_record_stands_for_what_did_not_run() -> None:
    """With the right count, within its ends, once, and for a possible reason."""
    assert judged(DUE[3:], (0, 2, 3, "outage")).ok
    assert found(judged(DUE[3:], (0, 2, 2, "outage"))) == {"misrecorded"}
    assert found(judged(DUE[2:], (0, 2, 3, "outage"))) == {"due_twice"}
    both = judged(DUE[3:], (0, 2, 3, "outage"), (2, 2, 1, "outage"))
    assert found(both) == {"due_twice"}
    assert found(judged(DUE[3:], (0, 2, 3, "cap"))) == {"misrecorded"}


def test_what_was_written_then_may_go_either_way() -> None:
    """A due time outside of the sure part may have a run, a record or neither."""
    unsure = (era(sure=3),)
    for runs in (DUE, DUE[:3], DUE[:4]):
        assert judged(runs, eras=unsure).ok
    assert judged(DUE[:3], (3, 4, 2, "paused"), eras=unsure).ok
    assert found(judged(DUE[:2], eras=unsure)) == {"unaccounted"}


def test_a_pause_is_recorded_and_nothing_runs_in_it() -> None:
    """A due time that surely lies in a pause is in a record, and has no run."""
    paused = (era(is_paused=True),)
    assert judged([], (0, 4, 5, "paused"), eras=paused).ok
    assert found(judged([], eras=paused)) == {"unaccounted"}
    ran = judged(DUE[:1], (0, 4, 5, "paused"), eras=paused)
    assert found(ran) == {"not_due", "due_twice"}
