"""jobs/gating.py, and the gate at each step: held, queued, admitted, refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fleet import Refusal
from jobs import calendars, promotion, submit, submit_many
from jobs.errors import OptionError
from jobs.models import Attachment, Owner, Run, Target, TargetGroup
from jobs.states import State
from jobs.storing import now
from tests.jobs.scenes import admitted, age, ask, living_worker, states
from tests.jobs.windows_world import calendar_of, freeze, window

pytestmark = pytest.mark.usefixtures("committed")

HOUR = timedelta(hours=1)


def held(owner: Owner, **options: object) -> Run:
    return submit("tests.add", 1, 2, owner=owner.slug, **options)


def is_about(moment: object, expected: object) -> bool:
    return abs(moment - expected) < timedelta(seconds=5)  # type: ignore[operator]


def test_what_is_submitted_outside_is_held_until_it_opens(acme: Owner) -> None:
    """Nothing is published of it, and it says when it is looked at again."""
    window(calendar_of(acme), opens_in=3_600, seconds=600)
    run = held(acme)
    assert (run.state, states(run)) == (State.HELD, ["held"])
    assert is_about(run.next_at, now() + HOUR)


def test_what_is_submitted_inside_is_queued_until_the_last_moment_that_fits(acme: Owner) -> None:
    """The close less the cut-off, less the time that it may take."""
    window(calendar_of(acme, cut_off_seconds=60), opens_in=-60, seconds=660)
    run = held(acme, time_limit_seconds=120)
    assert run.state == State.QUEUED
    assert is_about(run.not_after, now() + timedelta(seconds=600 - 60 - 120))


def test_what_does_not_fit_waits_for_a_longer_opening(acme: Owner) -> None:
    """An opening is measured by what is left of it."""
    calendar = calendar_of(acme)
    window(calendar, opens_in=-60, seconds=120)
    window(calendar, opens_in=3_600, seconds=600)
    run = held(acme, time_limit_seconds=300)
    assert run.state == State.HELD
    assert is_about(run.next_at, now() + HOUR)


def test_due_runs_are_queued_while_it_is_open_and_held_else(acme: Owner) -> None:
    """A countdown ends inside a freeze: promotion holds what it would have queued."""
    calendar = calendar_of(acme)
    window(calendar, opens_in=-60, seconds=7_200)
    run = held(acme, countdown=100)
    assert run.state == State.SCHEDULED
    freeze(calendar, seconds=3_600 + 60)
    age(run, "next_at", seconds=1)
    promotion.promote()
    run.refresh_from_db()
    assert (states(run), is_about(run.next_at, now() + HOUR)) == (["scheduled", "held"], True)


def test_an_admission_outside_is_refused_whatever_the_queue_says(acme: Owner) -> None:
    """The row and the openings decide: the hint is dropped, and the run is held."""
    run = held(acme)
    window(calendar_of(acme), opens_in=3_600, seconds=600)
    Run.objects.filter(id=run.id).update(state="queued", next_at=None)
    assert ask(living_worker(), [run]) == [Refusal.WAITS]
    run.refresh_from_db()
    assert (run.state, run.moves[-1][2]) == (State.HELD, "window closed")
    promotion.promote()
    run.refresh_from_db()
    assert is_about(run.next_at, now() + HOUR)


def test_an_admission_inside_says_until_when_it_may_start(acme: Owner) -> None:
    """And what ends it at the close, where the calendar does that."""
    window(calendar_of(acme, end="hard"), opens_in=-60, seconds=70)
    answer = admitted(living_worker(), held(acme, soft_time_limit_seconds=4))
    assert 4 < answer.start_within <= 6
    assert answer.time_limit is not None and 8 < answer.time_limit <= 10
    assert answer.soft_time_limit == 4


def test_a_freeze_holds_what_is_queued_and_its_end_lets_it_go(acme: Owner) -> None:
    """The change gates all that waits of its owners, after its commit."""
    calendar = calendar_of(acme)
    run = held(acme)
    assert run.state == State.QUEUED
    froze = freeze(calendar)
    run.refresh_from_db()
    assert run.state == State.HELD
    with calendars.changing(calendar):
        froze.delete()
    run.refresh_from_db()
    assert (run.state, states(run)) == (State.QUEUED, ["queued", "held", "queued"])


def test_all_calendars_that_apply_must_be_open(acme: Owner, northwind: Owner) -> None:
    """Those of the owner, the target and its groups; a stranger's run is not touched."""
    calendar_of(acme)
    target = Target.objects.create(owner=acme, name="fw-1")
    group = TargetGroup.objects.create(owner=acme, name="firewalls")
    group.targets.add(target)
    closed = calendar_of(acme, "closed")
    freeze(closed)
    Attachment.objects.filter(calendar=closed).delete()
    calendars.attach(closed, group)
    runs = [held(acme, target="fw-1"), held(acme, target="fw-2"), held(northwind, target="fw-1")]
    assert [run.state for run in runs] == ["held", "queued", "queued"]
    with calendars.changing_group(group):
        group.targets.clear()
    runs[0].refresh_from_db()
    assert runs[0].state == State.QUEUED


def test_a_run_that_requires_a_window_is_refused_without_a_calendar(acme: Owner) -> None:
    """Nothing of the batch is stored, and the error names a target."""
    calls = [{"x": number, "y": 1} for number in range(3)]
    with pytest.raises(OptionError, match="no calendar applies to target 'fw-0'"):
        submit_many("tests.add", calls, owner="acme", target="fw-{x}", window="required")
    assert not Run.objects.exists()


def test_a_spread_is_even_over_the_runs_of_one_submit(acme: Owner) -> None:
    """Each tenth of the spread has its part of them, and each run its own place again."""
    window(calendar_of(acme, spread_seconds=600), opens_in=3_600, seconds=3_600)
    calls = [{"x": number, "y": 1} for number in range(100)]
    runs = submit_many("tests.add", calls, owner="acme").runs
    looked_at = sorted(runs.values_list("next_at", flat=True))
    counts = [0] * 10
    for moment in looked_at:
        counts[int((moment - looked_at[0]).total_seconds() // 60)] += 1
    assert min(counts) >= 8
    assert (looked_at[-1] - looked_at[0]).total_seconds() > 580


def test_a_calendar_of_another_owner_is_not_attached(acme: Owner, northwind: Owner) -> None:
    """The error names it and whose thing it was to apply to."""
    with pytest.raises(OptionError, match="is not one of northwind's"):
        calendars.attach(calendar_of(acme), northwind)
