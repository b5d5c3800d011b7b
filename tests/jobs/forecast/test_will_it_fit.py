"""jobs/forecast/will_it_fit.py, capacity.py and soon.py: told from rows, and nothing is written."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import transaction

from jobs import Waves, submit_many, will_it_fit
from jobs.calendars import changes
from jobs.core import sql
from jobs.core.errors import ArgumentError, OptionError, UnknownTask
from jobs.core.sql import now
from jobs.forecast import soon
from jobs.forecast.capacity import RunTimes
from jobs.forecast.estimate import Forecast
from jobs.forecast.soon import opens_next
from jobs.forecast.will_it_fit import forecast_rest, rough_forecast
from jobs.models import Calendar, Job, Owner, Rollout, Run, Submission, Target, TargetGroup
from jobs.rollouts.verbs import pause
from tests.jobs.recurring.scenes import recurring
from tests.jobs.scenes import living_worker, submitted, without_triggers
from tests.jobs.windows_world import calendar_of, freeze, window

pytestmark = pytest.mark.usefixtures("committed")

NAMES = [f"fw-{number}" for number in range(40)]


def told(owner: Owner, targets: Any = tuple(NAMES), **options: Any) -> Forecast:
    """Ask about forty runs of ten seconds each; a worker has four slots."""
    return will_it_fit(
        "tests.add", owner=owner.slug, targets=targets, **{"expected_seconds": 10, **options}
    )


def told_of(submission: Submission | None = None, **options: Any) -> Forecast:
    """Ask about the rest of a submission, by default of the only one."""
    found = forecast_rest(submission or Submission.objects.get(), **options)
    assert found is not None
    return found


def seconds_to(moment: datetime | None) -> float:
    assert moment is not None
    return (moment - now()).total_seconds()


def has_ended(run: Run, *, seconds: float) -> None:
    """Have a run succeed that took that long."""
    sql.query(
        "UPDATE jobs_run SET state = 'succeeded', started_at = created_at, "
        "ended_at = created_at + make_interval(secs => %s) WHERE id = %s",
        [seconds, run.id],
    )


def test_nothing_is_written_and_the_end_is_told(acme: Owner) -> None:
    """Ten rounds of four slots; no target, run or submission is made."""
    living_worker()
    found = told(acme)
    assert seconds_to(found.finishes_at) == pytest.approx(100, abs=2)
    assert (found.count, found.without_calendar, found.warnings) == (40, 40, ())
    for model in (Target, Run, Submission):
        assert not model.objects.exists()


def test_what_does_not_fit_into_the_opening_is_left_over(acme: Owner) -> None:
    """By the time limit: in a minute of four slots, of runs that may take 28 s, 16 start."""
    living_worker()
    calendar = calendar_of(acme)
    window(calendar, opens_in=600, seconds=60)
    window(calendar, opens_in=1_200, seconds=600)
    found = told(acme, time_limit_seconds=28)
    assert [done.count for done in found.done] == [16, 24]
    assert (found.left_over, found.windows) == (24, 2)
    assert seconds_to(found.next_opening) == pytest.approx(1_200, abs=2)
    assert seconds_to(found.finishes_at) == pytest.approx(1_260, abs=2)


def test_targets_differ_by_their_calendars(acme: Owner) -> None:
    """Those of a frozen group never start, nor those whose window nobody has approved."""
    living_worker()
    rows = Target.objects.bulk_create([Target(owner=acme, name=name) for name in NAMES])
    group = TargetGroup.objects.create(owner=acme, name="berlin")
    group.targets.set(rows[:12])
    shut = Calendar.objects.create(owner=acme, name="shut", needs_approval=False)
    changes.attach(shut, group)
    freeze(shut, seconds=31 * 86_400)
    window(shut, opens_in=60, seconds=60)
    asked = Calendar.objects.create(owner=acme, name="asked", needs_approval=True)
    changes.attach(asked, rows[20])
    window(asked, opens_in=60, seconds=60)
    found = told(Owner.objects.get(slug="acme"), [*NAMES, "new"])
    assert (found.never, found.unapproved, found.without_calendar) == (13, 1, 28)
    assert found.names["unapproved"] == ("fw-20",)
    assert found.names["never"] == (*NAMES[:10],)
    assert found.finishes_at is None and seconds_to(found.ends_at) == pytest.approx(70, abs=2)
    assert told(Owner.objects.get(slug="acme"), group).never == 12


def test_others_work_takes_its_part_by_weight(acme: Owner, northwind: Owner) -> None:
    """Beside an owner of a third of acme's weight, acme has three of four slots."""
    living_worker()
    submitted(northwind, 500)
    found = told(acme, countdown=0)
    assert found.share == pytest.approx(0.75)
    assert seconds_to(found.finishes_at) == pytest.approx(140, abs=2)
    Owner.objects.filter(slug="northwind").update(paused_at=now())
    assert seconds_to(told(acme).finishes_at) == pytest.approx(100, abs=2)


def test_recurring_runs_that_come_take_their_part(acme: Owner, northwind: Owner) -> None:
    """As much of four slots as their owner's weight, a third of acme's, gives them."""
    living_worker()
    for _ in range(4):
        recurring(northwind, schedule="seconds", interval_seconds=20)
    # 0.2 runs a second, each of 10 s, as nothing else is known of them: two slots' worth.
    assert seconds_to(told(acme).finishes_at) == pytest.approx(140, rel=0.1)
    Job.objects.update(enabled=False)
    assert seconds_to(told(acme).finishes_at) == pytest.approx(100, abs=2)


def test_what_is_held_waits_as_it_is_told(acme: Owner) -> None:
    """The rest of a submission, by the calendars that its runs have."""
    living_worker()
    window(calendar_of(acme), opens_in=600, seconds=60)
    first, *_ = submitted(acme, 3, time_limit_seconds=5, countdown=620, deadline_seconds=5)
    rest = told_of()
    assert [done.count for done in rest.done] == [3]
    assert seconds_to(rest.starts_at) == pytest.approx(620, abs=2)
    Run.objects.update(deadline_at=now() + timedelta(seconds=500), window_policy="overridden")
    Run.objects.filter(id=first.id).update(window_policy="")
    rest = told_of()
    assert (rest.count, rest.without_calendar, rest.expired) == (3, 2, 3)


def test_run_times_are_those_of_the_newest_that_succeeded(acme: Owner, northwind: Owner) -> None:
    """The mean, of which one that hung counts ten medians; others' runs say nothing."""
    living_worker()
    for run in submitted(northwind, 3):
        has_ended(run, seconds=900)
    for run, took in zip(submitted(acme, 11), [4.0] * 10 + [9_000.0], strict=True):
        has_ended(run, seconds=took)
    found = told(acme, ["fw-1"], expected_seconds=None)
    assert found.needed_seconds == pytest.approx((10 * 4 + 40) / 11)
    assert found.warnings == ()


def test_what_a_slot_does_between_runs_and_waits_after_failures_count(acme: Owner) -> None:
    """Where runs filled most of the slots, and where some of them failed at first."""
    living_worker()
    runs = submitted(acme, 40)
    began_at = now() - timedelta(minutes=10)
    for number, run in enumerate(runs):
        # Four at a time: two seconds each, and half a second until the next.
        begin = began_at + timedelta(seconds=2.5 * (number // 4))
        Run.objects.filter(id=run.id).update(
            state="succeeded", started_at=begin, ended_at=begin + timedelta(seconds=2)
        )
    found = told(acme, expected_seconds=None)
    assert seconds_to(found.finishes_at) == pytest.approx(10 * 2.45, abs=1)
    Run.objects.filter(id=runs[0].id).update(attempt_count=2)
    later = told(acme, expected_seconds=None)
    # Half a second and two until it is queued again and done, and the setting's wait.
    once = seconds_to(later.finishes_at) - seconds_to(found.finishes_at)
    assert 2 < once < 20
    # One in five waits for another attempt: of forty runs one fails twice, by chance.
    Run.objects.filter(id__in=[run.id for run in runs[:8]]).update(
        state="retrying", next_at=now() + timedelta(hours=1)
    )
    twice = seconds_to(told(acme, expected_seconds=None).finishes_at)
    assert twice - seconds_to(found.finishes_at) > once + 2


def in_flight(runs: list[Run], *, ended: int, each: float, gap: float) -> None:
    """Have the first runs of a submission end one after the other, the last one just now."""
    # In one statement, by one clock: on a busy machine each takes its time.
    sql.query(
        "UPDATE jobs_run AS r SET state = 'succeeded', queued_at = now() - interval '60 s', "
        "started_at = now() - make_interval(secs => (%s - u.number) * %s + %s), "
        "ended_at = now() - make_interval(secs => (%s - u.number) * %s) "
        "FROM unnest(%s) WITH ORDINALITY AS u (id, number) WHERE r.id = u.id",
        [ended, gap, each, ended, gap, [run.id for run in runs[:ended]]],
    )


def test_in_windows_the_pace_is_that_of_their_open_time(acme: Owner) -> None:
    """What ended in the opening before, with a shut time between, says no slower pace."""
    living_worker()
    calendar = calendar_of(acme)
    window(calendar, opens_in=-8, seconds=2)
    window(calendar, opens_in=-1, seconds=3_600)
    runs = submitted(acme, 440)
    in_flight(runs, ended=60, each=0.05, gap=0.05)
    sql.query(
        "UPDATE jobs_run SET started_at = started_at - interval '5 s', "
        "ended_at = ended_at - interval '5 s' "
        "WHERE ended_at < clock_timestamp() - interval '1 s'"
    )
    rest = told_of()
    assert seconds_to(rest.finishes_at) == pytest.approx(19, rel=0.3)


def test_a_rough_forecast_needs_neither_calendars_nor_others(acme: Owner, northwind: Owner) -> None:
    """What is left, by slots and run times: at once, and it says so."""
    living_worker()
    window(calendar_of(acme), opens_in=600, seconds=60)
    submitted(northwind, 50)
    runs = submitted(acme, 40)
    submission = Submission.objects.get(pk=runs[0].submission_id)
    for run in runs[:20]:
        has_ended(run, seconds=3)
    found = rough_forecast(submission)
    assert found is not None and found.count == 20 and "Rough" in found.warnings[0]
    assert seconds_to(found.finishes_at) == pytest.approx(15, rel=0.3)
    Run.objects.update(state="cancelled")
    assert rough_forecast(submission) is None


def test_limits_pauses_and_deadlines_count(acme: Owner) -> None:
    """At most one at once, not before it is resumed, and not after the deadline."""
    living_worker()
    Owner.objects.filter(slug="acme").update(
        max_running=1, paused_at=now(), paused_until=now() + timedelta(seconds=60)
    )
    found = told(acme, deadline_seconds=100)
    assert seconds_to(found.starts_at) == pytest.approx(60, abs=2)
    assert found.expired in {35, 36}


def test_what_a_submit_would_refuse_is_refused(acme: Owner) -> None:
    """By name, before anything is asked."""
    with pytest.raises(UnknownTask):
        will_it_fit("tests.nothing", owner="acme", targets=["fw-1"])
    with pytest.raises(ArgumentError, match="y"):
        told(acme, arguments={"x": 1})
    with pytest.raises(OptionError, match="expected_seconds"):
        told(acme, expected_seconds=0)
    for seconds in ("x", float("nan"), float("inf"), True):
        with pytest.raises(OptionError, match="expected_seconds: is a number above 0"):
            told(acme, expected_seconds=seconds)
    for targets in ("fw-1", {"fw-1": 1}, None):
        with pytest.raises(OptionError, match="targets: is a list of names, or a group"):
            told(acme, targets)
    for names in ([], ["x"] * 100_001, TargetGroup.objects.create(owner=acme, name="empty")):
        with pytest.raises(OptionError, match="targets: are 1 to 100,000, not "):
            told(acme, names)
    for at in (datetime(2030, 1, 1), "2030-01-01"):
        with pytest.raises(OptionError, match="at: is a datetime with a time zone"):
            told(acme, at=at)


@pytest.mark.proof
def test_thousands_of_targets_are_told_in_seconds(acme: Owner) -> None:
    """As many as a fleet has, in windows of a few seconds."""
    living_worker()
    rows = [Target(owner=acme, name=f"edge-{number:04}") for number in range(3_000)]
    groups = [TargetGroup.objects.create(owner=acme, name=f"site {n}") for n in range(10)]
    # What triggers would note for each row is of calendars, of which there are none yet.
    with transaction.atomic(), without_triggers():
        rows = Target.objects.bulk_create(rows)
        for number, group in enumerate(groups):
            group.targets.set(rows[number::10])
    for number, group in enumerate(groups):
        calendar = Calendar.objects.create(owner=acme, name=group.name, needs_approval=False)
        changes.attach(calendar, group)
        window(calendar, opens_in=60 + 5 * number, seconds=5)
    begun = now()
    found = told(Owner.objects.get(slug="acme"), [row.name for row in rows], expected_seconds=0.05)
    assert (found.windows, found.never) == (10, 0)
    assert now() - begun < timedelta(seconds=10)
    assert found.finishes_at is not None
    finish = (found.finishes_at - begun).total_seconds()
    assert finish == pytest.approx(60 + 45 + 300 * 0.05 / 4, abs=2)


def rollout(owner: Owner, *sizes: int | str, **waves: Any) -> Submission:
    """Submit eight runs of ten seconds in waves."""
    calls = [{"x": number, "y": 0} for number in range(8)]
    return submit_many("tests.add", calls, owner=owner, waves=Waves(sizes=sizes, **waves))


TEN = RunTimes(10)
"""Times of runs, of which none has ended."""


def test_waves_follow_each_other_and_the_end_is_told(acme: Owner) -> None:
    """One run, then four, then 35 in nine rounds; a minute between two waves."""
    living_worker()
    waves = Waves(sizes=[1, 4, "100%"], between=timedelta(minutes=1))
    found = told(acme, waves=waves)
    assert seconds_to(found.finishes_at) == pytest.approx(10 + 60 + 10 + 60 + 90, abs=3)
    assert (found.count, found.awaiting, found.warnings) == (40, 0, ())
    for site, name in zip("abab", NAMES, strict=False):
        acme.targets.create(name=name, labels={"site": site})
    spread = replace(waves, spread="site")
    assert told(acme, NAMES[:4], waves=spread).count == 4


def test_of_waves_that_wait_for_an_approval_nothing_is_told(acme: Owner) -> None:
    """Only of the first one; a warning names the wave from which on."""
    living_worker()
    found = told(acme, waves=Waves(sizes=[4, 6, "100%"], between="approval"))
    assert (found.count, found.awaiting, found.finishes_at) == (4, 36, None)
    assert seconds_to(found.ends_at) == pytest.approx(10, abs=2)
    assert "From wave 2 on" in found.warnings[0]
    submission = rollout(acme, 2, "100%", between="approval")
    rest = told_of(submission, expected=TEN)
    assert (rest.count, rest.awaiting, rest.finishes_at) == (2, 6, None)
    submission.runs.filter(state="queued").update(state="succeeded")
    rest = told_of(submission, expected=TEN)
    assert (rest.count, rest.awaiting, rest.ends_at) == (0, 6, None)
    assert "From wave 2 on" in rest.warnings[0]


def test_the_rest_of_a_rollout_is_told(acme: Owner, northwind: Owner) -> None:
    """Its waves in sequence; one that is stopped as if it were resumed; others' waves, too."""
    living_worker()
    submission = rollout(acme, 1, 3, "100%", between=timedelta(minutes=1))
    rest = told_of(submission, expected=TEN)
    assert rest.count == 8
    assert seconds_to(rest.finishes_at) == pytest.approx(10 + 60 + 10 + 60 + 10, abs=3)
    # Beside it, the runs of another owner share the slots with one wave at a time.
    assert seconds_to(told(northwind, NAMES[:4]).finishes_at) == pytest.approx(20, abs=3)
    pause(submission)
    rest = told_of(submission, expected=TEN)
    assert "resumed" in rest.warnings[0] and rest.finishes_at is not None
    submission.runs.filter(state="queued").update(state="succeeded")
    Rollout.objects.update(state="waiting", next_at=now() + timedelta(seconds=30))
    rest = told_of(submission, expected=TEN)
    assert rest.count == 7
    assert seconds_to(rest.starts_at) == pytest.approx(30, abs=2)
    assert seconds_to(rest.finishes_at) == pytest.approx(30 + 10 + 60 + 10, abs=3)


def test_the_latest_end_has_a_failure_in_each_wave(acme: Owner) -> None:
    """One of two may fail although it is unlikely; the wave behind it then has the next opening."""
    living_worker()
    calendar = calendar_of(acme)
    window(calendar, opens_in=-10, seconds=45)
    window(calendar, opens_in=600, seconds=600)
    submission = rollout(acme, 2, "100%")
    rest = told_of(submission, expected=RunTimes(10, retry_share=0.1, spread=0.2))
    assert seconds_to(rest.finishes_at) == pytest.approx(10 + 20, abs=3)
    assert seconds_to(rest.earliest_at) == pytest.approx(30 / 1.2, abs=3)
    assert seconds_to(rest.latest_at) > 600


def test_a_run_of_a_wave_that_hangs_is_taken_to_fail(acme: Owner) -> None:
    """The next wave then waits for its second attempt; one that runs as long as others ends."""
    living_worker()
    times = RunTimes(10, retry_share=0.1, failed_seconds=300)
    submission = rollout(acme, 1, "100%")
    first = submission.runs.filter(state="queued")
    first.update(state="running", started_at=now())
    assert seconds_to(told_of(submission, expected=times).starts_at) == pytest.approx(10, abs=2)
    submission.runs.filter(state="running").update(started_at=now() - timedelta(seconds=150))
    rest = told_of(submission, expected=times)
    assert seconds_to(rest.starts_at) > 300 - 150 + 10


def test_failed_attempts_are_told_by_how_long_they_took(acme: Owner) -> None:
    """They took a minute each, and runs that succeeded a second: also at the end of all."""
    living_worker()
    runs = submitted(acme, 44)
    for run in runs[:40]:
        has_ended(run, seconds=1)
    failed = [run.id for run in runs[:4]]
    Run.objects.filter(id__in=failed).update(attempt_count=2)
    sql.query(
        "INSERT INTO jobs_attempt (run_id, token, number, outcome, admitted_at, started_at,"
        " ended_at, recorded_at) SELECT id, 1, 1, 'retrying', now(), now() - interval '60 s',"
        " now(), now() FROM jobs_run WHERE id = ANY(%s)",
        [failed],
    )
    rest = told_of()
    assert seconds_to(rest.latest_at) > 60
    assert seconds_to(rest.earliest_at) < 30


# --- what opens next ----------------------------------------------------------------------


def test_the_next_openings_have_the_runs_that_wait_for_them(
    acme: Owner, northwind: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line an owner and opening, the earliest first; others' runs are not counted."""
    window(calendar_of(acme, "nights"), opens_in=7_200, seconds=3_600)
    window(calendar_of(northwind, "lunch"), opens_in=3_600, seconds=600)
    living_worker()
    submitted(acme, 5)
    submitted(northwind, 2)
    found = opens_next(None, now=now())
    assert found is not None
    assert [(one.owner.slug, one.calendar, one.count) for one in found] == [
        ("northwind", "lunch", 2),
        ("acme", "nights", 5),
    ]
    assert all(one.left_over is None for one in found), "no run time is known"
    assert [one.owner for one in opens_next([acme.pk], now=now()) or ()] == [acme]
    monkeypatch.setattr(soon, "run_times_of", lambda *_, **__: RunTimes(seconds=3_601))
    assert {one.left_over for one in opens_next(None, now=now(), busy=None) or ()} == {None}
    # Four slots, shared by two owners of weights 3 and 1.
    assert [one.left_over for one in opens_next(None, now=now()) or ()] == [1, 2]
