"""jobs/runs/override.py: outside its windows, by somebody, for a reason that is kept."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from fleet import Kind, Refusal
from jobs.calendars import changes
from jobs.core.errors import OptionError
from jobs.core.states import State
from jobs.models import AuditEntry, Calendar, Owner, Run
from jobs.owners.tokens import make_token
from jobs.runs.override import held_by, held_by_of, override_submission, override_windows
from jobs.system.promotion import promote
from tests.jobs.scenes import (
    admitted,
    age,
    ask,
    hinted,
    living_worker,
    recorded,
    states,
    submitted,
)
from tests.jobs.windows_world import calendar_of, freeze, window

pytestmark = pytest.mark.usefixtures("committed")


@pytest.fixture
def ben(committed: None) -> Iterator[User]:
    """An operator, who overrides."""
    yield User.objects.create_user("ben")
    User.objects.all().delete()


def test_what_is_held_is_queued_with_who_and_why(acme: Owner, ben: User) -> None:
    """Its hint is out, a worker may start it, and the audit has it. Its deadline still counts."""
    freeze(calendar_of(acme))
    [run] = submitted(acme, deadline_seconds=60)
    assert run.state == State.HELD
    assert override_windows([run.id], actor=ben, reason="outage of a customer") == 1
    run.refresh_from_db()
    assert (run.window_policy, states(run)) == ("shared", ["held", "queued"])
    assert run.moves[-1][2] == "windows overridden by ben: outage of a customer"
    assert run.deadline_at is not None
    assert hinted() == [run.id]
    assert admitted(living_worker(), run).start_within > 20
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.actor, entry.owner) == ("override windows", ben, acme)
    assert (entry.object_id, entry.reason) == (str(run.id), "outage of a customer")


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501, "\x00"])
def test_without_a_reason_nothing_is_overridden(acme: Owner, ben: User, reason: str) -> None:
    """One that can be kept, for whoever asks later."""
    [run] = submitted(acme)
    with pytest.raises(OptionError, match="option reason"):
        override_windows([run.id], actor=ben, reason=reason)
    with pytest.raises(OptionError, match="option reason"):
        override_submission(run.submission, actor=ben, reason=reason)
    assert Run.objects.get().window_policy == ""


# --- calendars on which the actor may not decide -----------------------------------------------


def shared_calendar(owner: Owner, name: str = "year end", **fields: Any) -> Calendar:
    """Make a calendar without an owner, on which only superusers decide, that applies to one."""
    made = Calendar.objects.create(owner=None, name=name, needs_approval=False, **fields)
    changes.attach(made, owner)
    return made


def actor_of(kind: str, owner: Owner, ben: User) -> Any:
    """Return the one who overrides: the operator, a superuser, or a token."""
    if kind == "operator":
        return ben
    if kind == "superuser":
        return User.objects.create_superuser("root")
    token_owner = owner if kind == "owner's token" else None
    return make_token("robot", scopes=["operate"], owner=token_owner).token


OWN = ("operator", "owner's token")
ALL = ("superuser", "token for all owners")


@pytest.mark.parametrize("kind", [*OWN, *ALL])
@pytest.mark.parametrize("is_due", [True, False])
def test_an_override_counts_where_its_actor_decides(
    acme: Owner, ben: User, kind: str, is_due: bool
) -> None:
    """A freeze of a shared calendar holds a run that an owner's operator has overridden: when it is
    overridden and when it becomes due. What holds it is named.
    """
    freeze(calendar_of(acme))
    freeze(shared_calendar(acme))
    [run] = submitted(acme, **({} if is_due else {"countdown": 3_600}))
    assert override_windows([run.id], actor=actor_of(kind, acme, ben), reason="outage") == 1
    if not is_due:
        age(run, "next_at", seconds=1)
        promote()
    if kind in ALL:
        assert states(run)[-1] == "queued"
        assert (held_by([run.id]), held_by_of(run.submission)) == ([], [])
    else:
        assert states(run)[-1] == "held"
        assert (held_by([run.id]), held_by_of(run.submission)) == (["year end"], ["year end"])
        assert "year end" in run.why_waiting() and "nights" not in run.why_waiting()


def test_a_freeze_that_comes_after_an_override(acme: Owner, ben: User) -> None:
    """One of a calendar on which the actor decides does not hold the run.

    A shared one holds it at its admission; a superuser's override then counts for it.
    """
    own, shared = calendar_of(acme), shared_calendar(acme)
    [run] = submitted(acme)
    override_windows([run.id], actor=ben, reason="now")
    freeze(own)
    promote()
    assert states(run) == ["queued"]
    freeze(shared)
    [answer] = ask(living_worker(), [run])
    assert (answer, states(run)[-1]) == (Refusal.WAITS, "held")
    root = User.objects.create_superuser("root")
    assert override_windows([run.id], actor=ben, reason="again") == 0
    assert override_windows([run.id], actor=root, reason="urgent") == 1
    assert states(run)[-1] == "queued"


@pytest.mark.parametrize("kind", ["operator", "superuser"])
def test_an_overridden_run_stops_at_a_shared_close(acme: Owner, ben: User, kind: str) -> None:
    """The end of an owner's own window does not stop it. That of a shared one does, unless a
    superuser has overridden it.
    """
    own, shared = calendar_of(acme, end="hard"), shared_calendar(acme, end="hard")
    window(own, opens_in=-60, seconds=3_600)
    window(shared, opens_in=-60, seconds=7_200)
    [run] = submitted(acme)
    override_windows([run.id], actor=actor_of(kind, acme, ben), reason="now")
    given = admitted(living_worker(), run)
    recorded(given, Kind.STARTED)
    if kind == "superuser":
        assert given.closes_within is None
    else:
        assert given.closes_within is not None and given.closes_within > 3_600
    freeze(own)
    promote()
    run.refresh_from_db()
    assert run.stop_at is None
    freeze(shared)
    promote()
    run.refresh_from_db()
    assert (run.stop_at is None) == (kind == "superuser")
