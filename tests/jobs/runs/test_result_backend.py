"""jobs/runs/result_backend.py: a chord counts who has ended, and calls its body once."""

from typing import Any

import pytest
from celery import current_app, states
from celery.app.task import Context
from django_celery_results.models import ChordCounter

from fleet import Kind
from jobs import submit_many
from jobs.catalog.registry import resolve
from jobs.models import Owner, Run
from jobs.system.heartbeat import leave
from tests.jobs.scenes import admitted, at_once, called, living_worker, recorded

pytestmark = pytest.mark.usefixtures("committed")


@pytest.fixture
def members(acme: Owner) -> list[Run]:
    """Three runs of a chord whose body adds their results."""
    body = resolve("tests.total").s()
    body.link_error(resolve("tests.total").si([7]))
    calls = [{"x": number, "y": 1} for number in range(3)]
    submission = submit_many("tests.add", calls, owner=acme, chord=body)
    return list(Run.objects.filter(submission=submission).order_by("id"))


def request_of(run: Run) -> Context:
    """Return what Celery knows of a member while it runs."""
    body: Any = resolve("tests.total").s()
    return Context({"id": str(run.id), "chord": body, **run.options})


def end(run: Run) -> None:
    """End a member as Celery does: store the outcome, then tell the chord."""
    current_app.backend.mark_as_done(str(run.id), 1, request=request_of(run))


def test_an_end_that_is_told_twice_counts_once(members: list[Run]) -> None:
    """A process died after the first word, and the run was tried again."""
    for run in (members[0], members[0], members[0], members[1], members[0]):
        end(run)
    assert called() == []
    assert ChordCounter.objects.get().count == 1
    end(members[2])
    assert called() == [("tests.total", [[1, 1, 1]])]
    end(members[2])
    assert len(called()) == 1


def test_members_that_end_at_once_call_the_body_once(members: list[Run]) -> None:
    """Whoever comes last under the counter's lock."""
    at_once(*[lambda run=run: end(run) for run in members * 2])  # type: ignore[misc]
    assert called() == [("tests.total", [[1, 1, 1]])]
    assert not ChordCounter.objects.exists()


def test_a_member_that_stored_its_end_and_died_is_counted_by_rescue(members: list[Run]) -> None:
    """The chord goes on though the member itself never told it."""
    worker = living_worker()
    recorded(admitted(worker, members[0]), Kind.STARTED)
    current_app.backend.store_result(str(members[0].id), 1, states.SUCCESS)
    for run in members[1:]:
        end(run)
    assert called() == []
    leave(worker)
    assert called() == [("tests.total", [[1, 1, 1]])]


def test_a_process_that_dies_in_the_call_of_the_body_is_followed(
    members: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last end is told again, and calls the body."""

    def dies(*_args: Any, **_options: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(resolve("tests.total"), "apply_async", dies)
        for run in members[:2]:
            end(run)
        with pytest.raises(SystemExit):
            end(members[2])
    assert called() == []
    end(members[2])
    assert called() == [("tests.total", [[1, 1, 1]])]


def test_a_member_that_ignores_its_result_is_stored(members: list[Run]) -> None:
    """As a plain task's, and with its value: the body wants it. What is stored stays."""
    for number, run in enumerate(members):
        request = request_of(run)
        request.ignore_result = True
        current_app.backend.mark_as_done(str(run.id), number, request, store_result=False)
        current_app.backend.mark_as_revoked(str(run.id), request=request, store_result=False)
    assert called() == [("tests.total", [[0, 1, 2]])]
