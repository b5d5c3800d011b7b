"""jobs/runs/override.py: outside its windows, by somebody, for a reason that is kept."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from fleet import Kind
from jobs.calendars.changes import changing
from jobs.core.errors import OptionError
from jobs.core.states import State
from jobs.models import AuditEntry, Owner, Run
from jobs.runs.override import override_submission, override_windows
from jobs.runs.recording import move
from jobs.system.promotion import promote
from tests.jobs.scenes import admitted, age, hinted, living_worker, recorded, states, submitted
from tests.jobs.windows_world import calendar_of, freeze

pytestmark = pytest.mark.usefixtures("committed")


@pytest.fixture
def ben(committed: None) -> Iterator[User]:
    """Who overrides."""
    user = User.objects.create_user("ben")
    yield user
    user.delete()


def test_what_is_held_is_queued_with_who_and_why(acme: Owner, ben: User) -> None:
    """Its hint is out, a worker may start it, and the audit has it."""
    freeze(calendar_of(acme))
    [run] = submitted(acme)
    assert run.state == State.HELD
    assert override_windows([run.id], actor=ben, reason="outage of a customer") == 1
    run.refresh_from_db()
    assert (run.window_policy, states(run)) == ("overridden", ["held", "queued"])
    assert run.moves[-1][2] == "windows overridden by ben: outage of a customer"
    assert hinted() == [run.id]
    assert admitted(living_worker(), run).start_within > 20
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor, entry.owner) == ("override windows", ben, acme)
    assert (entry.object_id, entry.reason) == (str(run.id), "outage of a customer")


def test_what_is_not_due_waits_for_its_time(acme: Owner, ben: User) -> None:
    """The windows alone are overridden: its promotion finds nothing that keeps it."""
    freeze(calendar_of(acme))
    [run] = submitted(acme, countdown=3_600)
    override_windows([run.id], actor=ben, reason="now")
    run.refresh_from_db()
    assert run.state == State.SCHEDULED
    age(run, "next_at", seconds=1)
    promote()
    assert states(run) == ["scheduled", "queued"]


def test_what_runs_or_has_ended_is_not_touched(acme: Owner, ben: User) -> None:
    """It is neither counted nor audited; nor is it a second time."""
    worker = living_worker()
    running, ended, waiting = submitted(acme, 3)
    recorded(admitted(worker, running), Kind.STARTED)
    recorded(admitted(worker, ended), Kind.SUCCEEDED)
    ids = [running.id, ended.id, waiting.id]
    assert override_windows(ids, actor=ben, reason="now") == 1
    assert override_windows(ids, actor=ben, reason="now") == 0
    assert AuditEntry.objects.get().object_id == str(waiting.id)
    assert states(waiting) == ["queued"]


def test_what_its_owner_or_a_deadline_keeps_is_kept(acme: Owner, ben: User) -> None:
    """Overriding is of windows: the deadline of a run counts on."""
    freeze(calendar_of(acme))
    [run] = submitted(acme, deadline_seconds=60)
    override_windows([run.id], actor=ben, reason="now")
    run.refresh_from_db()
    assert run.deadline_at is not None


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501, "\x00"])
def test_without_a_reason_nothing_is_overridden(acme: Owner, ben: User, reason: str) -> None:
    """One that can be kept, for whoever asks later."""
    [run] = submitted(acme)
    with pytest.raises(OptionError, match="option reason"):
        override_windows([run.id], actor=ben, reason=reason)
    with pytest.raises(OptionError, match="option reason"):
        override_submission(run.submission, actor=ben, reason=reason)
    assert Run.objects.get().window_policy == ""


def test_a_submission_is_overridden_as_one(acme: Owner, ben: User) -> None:
    """Each run that waits has an entry, the submission one with their number."""
    freeze(calendar_of(acme))
    runs = submitted(acme, 3)
    move([runs[0].id], to=State.CANCELLED)
    assert override_submission(runs[0].submission, actor=ben, reason="now") == 2
    assert AuditEntry.objects.filter(object_type="run").count() == 2
    assert AuditEntry.objects.get(object_type="submission").details == {"runs": 2}
    assert [states(run)[-1] for run in runs] == ["cancelled", "queued", "queued"]


def test_a_freeze_that_comes_later_does_not_hold_it(acme: Owner, ben: User) -> None:
    """What was overridden stays so, for its retries too."""
    calendar = calendar_of(acme)
    [run] = submitted(acme)
    override_windows([run.id], actor=ben, reason="now")
    freeze(calendar)
    with changing(calendar):
        pass
    assert states(run) == ["queued"]
