"""jobs/runs/gate.py, and the gate at each step: held, queued, admitted, refused."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from fleet import Kind, Refusal
from jobs import submit, submit_many
from jobs.calendars import changes
from jobs.calendars.approvals import approve, revoke
from jobs.calendars.windows import change_window
from jobs.core import prepared
from jobs.core.errors import OptionError
from jobs.core.sql import now
from jobs.core.states import State
from jobs.models import (
    Attachment,
    Calendar,
    Opening,
    Owner,
    Run,
    Target,
    TargetGroup,
    Window,
)
from jobs.runs import admission, gate
from jobs.runs.cancellation import cancel_runs
from jobs.system import promotion
from tests.jobs.scenes import (
    admitted,
    age,
    ask,
    at_once,
    begun,
    behind,
    hinted,
    living_worker,
    recorded,
    states,
    submitted,
)
from tests.jobs.windows_world import calendar_of, freeze, window
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("committed")

HOUR = timedelta(hours=1)


def held(owner: Owner, **options: Any) -> Run:
    return submit("tests.add", 1, 2, owner=owner.slug, **options)


def after(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


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
    assert states(run) == ["scheduled", "held"]
    assert is_about(run.next_at, now() + HOUR)


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


def test_all_calendars_that_apply_must_be_open(acme: Owner, northwind: Owner) -> None:
    """Those of the owner, the target and its groups; a stranger's run is not touched."""
    calendar_of(acme)
    target = Target.objects.create(owner=acme, name="fw-1")
    group = TargetGroup.objects.create(owner=acme, name="firewalls")
    group.targets.add(target)
    closed = calendar_of(acme, "closed")
    freeze(closed)
    Attachment.objects.filter(calendar=closed).delete()
    changes.attach(closed, group)
    runs = [held(acme, target="fw-1"), held(acme, target="fw-2"), held(northwind, target="fw-1")]
    assert [run.state for run in runs] == ["held", "queued", "queued"]
    with changes.changing_group(group):
        group.targets.clear()
    promotion.promote()
    assert states(runs[0])[-1] == "queued"


def test_a_run_that_requires_a_window_is_refused_without_a_calendar(acme: Owner) -> None:
    """Nothing of the batch is stored, and the error names a target."""
    calls = [{"x": number, "y": 1} for number in range(3)]
    with pytest.raises(OptionError, match="no calendar applies to target 'fw-0'"):
        submit_many("tests.add", calls, owner="acme", target="fw-{x}", window="required")
    assert not Run.objects.exists()


def test_a_calendar_of_another_owner_is_not_attached(acme: Owner, northwind: Owner) -> None:
    """The error names it and whose thing it was to apply to."""
    with pytest.raises(OptionError, match="is not one of northwind's"):
        changes.attach(calendar_of(acme), northwind)
    for what in ("northwind", None):
        with pytest.raises(OptionError, match="to: is one of Owner, Job, Target, TargetGroup"):
            changes.attach(Calendar.objects.get(), what)  # type: ignore[arg-type]


def test_an_admission_that_waited_past_the_close_admits_nothing(acme: Owner) -> None:
    """Whoever waits for a lock reads PostgreSQL's clock when that is over, and not before."""
    admission._Limits.are_expected = True  # then the wait is in the admission's transaction
    Owner.objects.update(max_running=1)
    window(calendar_of(acme), opens_in=-60, seconds=62)
    run = held(acme)
    assert run.state == State.QUEUED
    worker = living_worker()
    with behind(lambda: ask(worker, [run])) as (begin, outcomes):
        prepared.run("runs/lock_limits", [run.id], {"ids": [run.id]})
        begin()
        wait_for(lambda: not Opening.objects.filter(closes_at__gt=now()).exists(), what="the close")
    assert outcomes == [[Refusal.WAITS]]
    assert states(run) == ["queued", "held"]


def test_an_admission_waits_for_a_change_and_sees_it(acme: Owner) -> None:
    """It read the row before: its openings are those of after the change's commit."""
    calendar = calendar_of(acme)
    run = held(acme)
    worker = living_worker()
    with behind(lambda: ask(worker, [run])) as (begin, outcomes):
        freeze(calendar)
        begin()
    assert outcomes == [[Refusal.WAITS]]
    assert states(run) == ["queued", "held"]


def test_a_change_waits_for_admissions_of_its_owners(acme: Owner) -> None:
    """What is admitted is admitted before the change is there: both have an order."""
    calendar = calendar_of(acme)
    run = held(acme)
    worker = living_worker()
    with behind(lambda: freeze(calendar)) as (begin, outcomes):
        [answer] = ask(worker, [run])
        begin()
    assert not isinstance(answer, Refusal)
    assert len(outcomes) == 1 and not isinstance(outcomes[0], Exception)
    assert states(run) == ["queued", "admitted"]


def test_admissions_do_not_wait_for_each_other_where_calendars_apply(acme: Owner) -> None:
    """They share the lock, which only a change holds alone."""
    calendar_of(acme)
    run, other = held(acme), held(acme)
    workers = living_worker(), living_worker("w2@here")
    with transaction.atomic():
        [first] = ask(workers[0], [run])
        [answers] = at_once(lambda: ask(workers[1], [other]))
    assert not isinstance(first, Refusal)
    assert not isinstance(answers, Exception) and not isinstance(answers[0], Refusal)


def test_changes_admissions_gates_and_cancels_at_once(acme: Owner, northwind: Owner) -> None:
    """They take their locks in one order: nobody is a deadlock's victim."""
    calendar = calendar_of(acme)
    changes.attach(Calendar.objects.create(name="all", needs_approval=False), northwind)
    shared = Calendar.objects.get(name="all")
    changes.attach(shared, acme)
    runs = [held(owner) for owner in (acme, northwind) for _ in range(20)]
    worker = living_worker()
    ids = [run.id for run in runs]

    def gated() -> int:
        with transaction.atomic():
            return gate.gate_runs(ids[::-1], cause="due")

    outcomes = at_once(
        *(lambda: freeze(shared, opens_in=9_999),) * 2,
        lambda: freeze(calendar, opens_in=9_999),
        lambda: changes.attach(calendar, acme),
        lambda: ask(worker, runs),
        gated,
        promotion.promote,
        lambda: cancel_runs(ids[10:15]),
        lambda: changes.delete(calendar),
    )
    failed = [one for one in outcomes if isinstance(one, Exception)]
    # Of a calendar that somebody else has just deleted.
    assert all(isinstance(one, Calendar.DoesNotExist) for one in failed), failed


def test_a_shared_calendar_holds_the_runs_of_all_its_owners(acme: Owner, northwind: Owner) -> None:
    """And of nobody else."""
    shared = Calendar.objects.create(name="all", needs_approval=False)
    for owner in (acme, northwind):
        changes.attach(shared, owner)
    stranger = Owner.objects.create(slug="stranger")
    runs = [held(owner) for owner in (acme, northwind, stranger)]
    freeze(shared)
    promotion.promote()
    assert [states(run)[-1] for run in runs] == ["held", "held", "queued"]


def test_a_retry_waits_for_its_window(acme: Owner) -> None:
    """Its back-off is over, its calendar is closed: it is held until that opens."""
    calendar = calendar_of(acme)
    run, first = begun(acme)
    freeze(calendar)
    recorded(first, Kind.RETRYING, delay=0.0)
    promotion.promote()
    assert states(run)[-2:] == ["retrying", "held"]
    assert is_about(run.next_at, now() + HOUR - after(60))


def test_what_no_worker_took_in_its_opening_is_held_again(acme: Owner) -> None:
    """From its last moment on; the next opening is what it waits for."""
    calendar = calendar_of(acme, cut_off_seconds=300)
    window(calendar, opens_in=-60, seconds=380)
    window(calendar, opens_in=3_600, seconds=600)
    run = held(acme)
    assert run.state == State.QUEUED
    age(run, "not_after", seconds=0.001)
    with changes.changing(calendar) as changed:
        changed.cut_off_seconds = 330
        changed.save()
    promotion.promote()
    assert states(run) == ["queued", "held"]
    assert is_about(run.next_at, now() + HOUR)


def begins_of(run_ids: list[UUID]) -> list[datetime]:
    """Return when these runs are looked at next."""
    runs = Run.objects.in_bulk(run_ids)
    return [run.next_at for one in run_ids if (run := runs[one]).next_at is not None]


def test_starts_are_spread_over_the_opening(acme: Owner) -> None:
    """Evenly over the runs of one submit: each tenth of the spread has its part of them.

    Each run has the same place whenever it is asked for.
    """
    window(calendar_of(acme, spread_seconds=600), opens_in=3_600, seconds=7_200)
    ids = [run.id for run in submitted("acme", 100)]
    begins = begins_of(ids)
    opens_at = Opening.objects.get().opens_at
    assert all(opens_at <= begin <= opens_at + after(600) for begin in begins)
    assert max(begins) - min(begins) > after(580)
    tenths = [(begin - min(begins)) // after(60) for begin in begins]
    assert min(tenths.count(tenth) for tenth in range(10)) >= 8
    with transaction.atomic():
        gate.gate_runs(ids, cause="due")
    assert begins_of(ids) == begins


def test_the_shortest_of_an_opening_come_first(acme: Owner) -> None:
    """Then most of them fit: their hints are in that order, whoever came first."""
    calendar = calendar_of(acme)
    window(calendar, opens_in=3_600, seconds=3_600)
    runs = [held(acme, time_limit_seconds=seconds) for seconds in (900, 60, 300)]
    with changes.changing(calendar):
        Window.objects.update(starts=(now() - after(60)).replace(tzinfo=None).isoformat())
    promotion.promote()
    assert hinted() == [runs[1].id, runs[2].id, runs[0].id]


def test_a_required_window_is_asked_for_at_the_admission_too(acme: Owner) -> None:
    """The calendar was taken from it since: it is held, and looked at again."""
    calendar = calendar_of(acme)
    run = held(acme, window="required")
    assert run.state == State.QUEUED
    [attachment] = calendar.attachments.all()
    attachment.delete()
    assert ask(living_worker(), [run]) == [Refusal.WAITS]
    promotion.promote()
    run.refresh_from_db()
    assert (run.state, run.moves[-1][2]) == (State.HELD, "window closed")
    assert is_about(run.next_at, now() + HOUR)


@pytest.fixture
def root(committed: None) -> Iterator[User]:
    """A superuser, who approves and revokes."""
    user = User.objects.create_superuser("root")
    yield user
    user.delete()


@pytest.mark.parametrize("taken", ["shortened", "frozen", "revoked"])
def test_what_a_change_closes_admits_nothing_from_its_commit_on(
    acme: Owner, root: User, taken: str
) -> None:
    """Also before a promotion has seen it: admission reads the openings, not the gate."""
    calendar = calendar_of(acme, needs_approval=taken == "revoked")
    opening = window(calendar, opens_in=-600, seconds=3_600)
    if taken == "revoked":
        approve(opening, actor=root)
    run = held(acme)
    assert run.state == State.QUEUED
    if taken == "shortened":
        change_window(opening, duration=after(300))
    elif taken == "frozen":
        freeze(calendar)
    else:
        revoke(opening, actor=root)
    assert states(run) == ["queued"]
    assert ask(living_worker(), [run]) == [Refusal.WAITS]
    assert states(run) == ["queued", "held"]
