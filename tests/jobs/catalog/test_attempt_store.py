"""jobs/catalog/attempt_store.py and context.py: a task writes of itself, fenced by its token."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import OperationalError, transaction

from fleet import Admission, Kind
from jobs.catalog import attempt_store
from jobs.catalog.attempt_store import AttemptStore
from jobs.catalog.context import RunContext
from jobs.core.errors import CheckpointError, OptionError, StaleAttempt
from jobs.models import Owner, Run
from jobs.runs.cancellation import cancel_runs
from jobs.runs.manual_retry import reopen_runs, retry_run
from tests.jobs.scenes import admitted, living_worker, recorded, submitted, taken_over
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("committed")
Seen = Callable[[Admission], RunContext]


@pytest.fixture
def seen() -> Iterator[Seen]:
    """Make what a task of an admission sees; all connections are closed at the end."""
    stores: list[AttemptStore] = []

    def context(at: Admission) -> RunContext:
        store = AttemptStore(UUID(at.run_id), at.token)
        stores.append(store)
        return RunContext(
            run_id=UUID(at.run_id),
            token=at.token,
            attempt=at.attempt,
            max_attempts=3,
            owner="acme",
            job_id=None,
            submission_id=None,
            due_at=None,
            labels={},
            _store=store,
        )

    yield context
    for store in stores:
        store.close()


def shown(run: Run) -> tuple[float, float | None, str] | None:
    run.refresh_from_db()
    found = run.task_progress
    return found and (found.done, found.total, found.note)


def test_progress_is_visible_from_inside_a_transaction(acme: Owner, seen: Seen) -> None:
    """Another connection sees it at once, and a rollback does not take it away."""
    [run] = submitted(acme)
    task = seen(admitted(living_worker(), run))
    with transaction.atomic():
        Owner.objects.filter(pk=acme.pk).update(weight=3)
        task.progress(1, 4, "half way")
        transaction.set_rollback(True)
    assert shown(run) == (1, 4, "half way")
    assert str(run.task_progress) == "25 % · 1 / 4 · half way"


def test_the_last_progress_is_written_without_another_call(acme: Owner, seen: Seen) -> None:
    """Calls within a second are one write; the newest is never lost."""
    [run] = submitted(acme)
    task = seen(admitted(living_worker(), run))
    for step in range(100):
        task.progress(step, 100)
    assert shown(run) == (0, 100, "")
    wait_for(lambda: shown(run) == (99, 100, ""))
    task.progress(100, 100)
    assert task._store is not None
    task._store.close()
    assert shown(run) == (100, 100, "")


def test_a_stale_attempt_writes_nothing_and_learns_it(acme: Owner, seen: Seen) -> None:
    """The row fences: another attempt has the run now."""
    [run] = submitted(acme)
    at = admitted(living_worker(), run)
    stale = seen(at)
    fresh = seen(taken_over(run))
    fresh.progress(5, 10)
    fresh.checkpoint("of the newer")
    with pytest.raises(StaleAttempt):
        stale.progress(9, 10)
    with pytest.raises(StaleAttempt):
        stale.checkpoint("of the stale")
    assert stale.is_cancelled and not fresh.is_cancelled
    assert shown(run) == (5, 10, "")
    assert fresh.last_checkpoint == "of the newer"


def test_a_checkpoint_of_a_stale_attempt_is_fenced_by_itself(acme: Owner, seen: Seen) -> None:
    """Also when it is the first thing that the attempt writes; and after the run's end."""
    [run] = submitted(acme)
    at = admitted(living_worker(), run)
    newer = taken_over(run)
    with pytest.raises(StaleAttempt):
        seen(at).checkpoint(1)
    recorded(newer, Kind.SUCCEEDED)
    with pytest.raises(StaleAttempt):
        seen(newer).checkpoint(2)
    run.refresh_from_db()
    assert run.checkpoint is None


def test_a_checkpoint_stays_over_retries_until_the_run_succeeds(acme: Owner, seen: Seen) -> None:
    """Those by the policy, and those by an operator; not over other arguments."""
    [run] = submitted(acme)
    first = admitted(living_worker(), run)
    assert seen(first).last_checkpoint is None
    seen(first).checkpoint({"page": 7})
    recorded(first, Kind.FAILED, error_type="Oops")
    reopen_runs([run.id])
    second = admitted(living_worker(), run)
    assert seen(second).last_checkpoint == {"page": 7}
    recorded(second, Kind.FAILED, error_type="Oops")
    run.refresh_from_db()
    retry_run(run, arguments={"x": 5, "y": 6})
    third = admitted(living_worker(), run)
    assert seen(third).last_checkpoint is None
    seen(third).checkpoint(8)
    recorded(third, Kind.SUCCEEDED)
    run.refresh_from_db()
    assert run.checkpoint is None


def test_a_checkpoint_is_encrypted(acme: Owner, seen: Seen, encrypted: None) -> None:
    """Under the key of results, bound to its run and field."""
    [run] = submitted(acme)
    task = seen(admitted(living_worker(), run))
    task.checkpoint("a secret")
    run.refresh_from_db()
    assert run.checkpoint_key == 1 and b"secret" not in bytes(run.checkpoint or b"")
    assert task.last_checkpoint == "a secret"
    Run.objects.filter(id=run.id).update(checkpoint=b"x" * 60)
    with pytest.raises(CheckpointError, match="cannot be read"):
        _ = task.last_checkpoint


def test_a_cancelled_attempt_is_to_stop(
    acme: Owner, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It learns it within a second, or by a progress that it writes."""
    [run] = submitted(acme)
    at = admitted(living_worker(), run)
    asked, writes = seen(at), seen(at)
    assert not asked.is_cancelled
    cancel_runs([run.id])
    wait_for(lambda: asked.is_cancelled)
    writes.progress(1)
    assert writes.is_cancelled


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ((-1, None, ""), "done"),
        ((True, None, ""), "done"),
        ((float("nan"), None, ""), "done"),
        ((1, 2e15, ""), "total"),
        ((1, "2", ""), "total"),
        ((1, None, "x" * 201), "note"),
        ((1, None, "\x00"), "note"),
    ],
)
def test_bad_progress_is_refused(acme: Owner, seen: Seen, given: Any, field: str) -> None:
    """With the name of the field and its limit; nothing is written."""
    [run] = submitted(acme)
    task = seen(admitted(living_worker(), run))
    with pytest.raises(OptionError, match=field):
        task.progress(*given)
    assert shown(run) is None


def test_a_bad_checkpoint_is_refused(acme: Owner, seen: Seen, settings: Any) -> None:
    """Too large, or no JSON."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "CHECKPOINT_MAX_BYTES": 1024}
    [run] = submitted(acme)
    task = seen(admitted(living_worker(), run))
    for value, problem in (("x" * 2_000, "1,024"), (object(), "value")):
        with pytest.raises(CheckpointError, match=problem):
            task.checkpoint(value)
    assert task.last_checkpoint is None


def test_without_postgresql_progress_does_not_disturb_the_task(
    acme: Owner, seen: Seen, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is written later; a checkpoint says that it was not stored."""
    [run] = submitted(acme)
    task = seen(admitted(living_worker(), run))

    def refuse(*_: Any) -> Any:
        raise OperationalError("is away")

    with monkeypatch.context() as patch:
        patch.setattr(attempt_store.connections, "create_connection", refuse)
        task.progress(1, 2)
        assert not task.is_cancelled
        with pytest.raises(CheckpointError, match="is away"):
            task.checkpoint(1)
    assert "is not written yet" in caplog.text
    assert task._store is not None
    task._store.close()
    assert shown(run) == (1, 2, "")


def test_a_broken_connection_is_opened_again(acme: Owner, seen: Seen) -> None:
    """PostgreSQL was restarted between two calls of a long task."""
    [run] = submitted(acme)
    task = seen(admitted(living_worker(), run))
    task.progress(1)
    assert task._store is not None
    task._store._connection.connection.close()
    task.checkpoint(3)
    assert task.last_checkpoint == 3


def test_a_run_without_a_row_reports_nothing() -> None:
    """Its job has no history: progress is ignored, a checkpoint is refused."""
    nothing = (None, None, None)
    task = RunContext(uuid4(), 1, 1, 3, "acme", *nothing, labels={})
    task.progress(1, 2)
    assert not task.is_cancelled and task.last_checkpoint is None
    with pytest.raises(CheckpointError, match="no row"):
        task.checkpoint(1)
