"""jobs/runs/submission.py: from a call to rows, in the caller's transaction, all or nothing."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
import redis
from asgiref.sync import sync_to_async
from django.db import connections, transaction
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from jobs import asubmit, asubmit_many, submit, submit_many
from jobs.core.errors import ArgumentError, OptionError, PayloadTooLarge
from jobs.models import IdempotencyKey, Job, Outbox, Owner, Run, Submission, Target
from tests import tasks
from tests.jobs.scenes import hinted, states

EARLIEST = datetime.min.replace(tzinfo=UTC)
LATEST = datetime.max.replace(tzinfo=UTC)


def assert_nothing_is_stored() -> None:
    for model in (Run, Submission, Target, Outbox, IdempotencyKey):
        assert not model.objects.exists(), model


@pytest.mark.parametrize("option", ["target", "lock"])
def test_one_submit_fills_in_no_template(acme: Owner, option: str) -> None:
    """All runs would share one target or lock named "fw-{x}". Other braces are a plain name."""
    with pytest.raises(OptionError, match=r"holds '{x}', which only submit_many fills in"):
        submit(tasks.add, x=1, y=2, owner=acme, **{option: "fw-{x}"})
    assert_nothing_is_stored()
    submit(tasks.add, x=1, y=2, owner=acme, **{option: "fw-{site}"})


def test_targets_and_locks_are_filled_for_each_run(acme: Owner) -> None:
    """From the run's own arguments, in the owner's scope."""
    calls = [{"n": 1}, {"n": 2}, {"n": 1}]
    submit_many("tests.record", calls, owner=acme, target="fw-{n}", lock="{n}")
    runs = Run.objects.select_related("target").order_by("id")
    assert [(run.target.name, run.lock_key) for run in runs if run.target] == [
        ("fw-1", "acme:1"),
        ("fw-2", "acme:2"),
        ("fw-1", "acme:1"),
    ]


@pytest.mark.parametrize(
    ("option", "state"),
    [
        ({"countdown": 60}, "scheduled"),
        ({"countdown": 0}, "queued"),
        ({"eta": timedelta(minutes=1)}, "scheduled"),
        ({"eta": timedelta(minutes=-1)}, "queued"),
    ],
)
def test_a_run_that_is_due_later_is_scheduled(
    acme: Owner, option: dict[str, float | timedelta], state: str
) -> None:
    """Only what is queued has a hint to be published."""
    eta = option.get("eta")
    time = {"eta": datetime.now(UTC) + eta} if isinstance(eta, timedelta) else option
    run = submit("tests.add", 1, 2, owner=acme, **time)
    assert states(run) == [state]
    assert Outbox.objects.exists() == (state == "queued")


@pytest.mark.parametrize(
    ("arguments", "error", "field"),
    [
        ({"x": 1}, ArgumentError, "argument y: is required"),
        ({"x": 1, "y": 2, "priorty": 3}, OptionError, "option priorty: "),
        ({"x": 1, "y": 2, "owner_id": 3}, ArgumentError, "argument owner_id: "),
        ({"x": 1, "y": 2, "token": 3}, ArgumentError, "argument token: "),
        ({"x": 1, "y": 2, "state": "succeeded"}, ArgumentError, "argument state: "),
        ({"x": 1, "y": "two"}, ArgumentError, "argument y: "),
        ({"x": 1, "y": 2, "priority": 10}, OptionError, "option priority: .* 0 to 9"),
        ({"x": 1, "y": 2, "queue": "nowhere"}, OptionError, "option queue: is one of"),
        # Python can hold these times, PostgreSQL cannot.
        ({"x": 1, "y": 2, "eta": EARLIEST}, OptionError, "eta: is at most 366 days"),
        ({"x": 1, "y": 2, "eta": LATEST}, OptionError, "eta: is at most 366 days"),
        ({"x": 1, "y": 2, "link": "tests.add"}, OptionError, "option link: is a Celery signature"),
    ],
)
def test_wrong_input_is_refused_by_name_and_nothing_is_stored(
    acme: Owner, arguments: dict[str, object], error: type[Exception], field: str
) -> None:
    """What a caller may not set is an unknown argument."""
    with pytest.raises(error, match=field):
        submit("tests.add", owner=acme, **arguments)  # type: ignore[arg-type]
    assert_nothing_is_stored()


def test_arguments_over_the_limit_are_refused(acme: Owner) -> None:
    """With both sizes, in bytes, and what to do instead."""
    with pytest.raises(PayloadTooLarge, match=r"at least .* the limit is 262,144; store what"):
        submit("tests.total", [1] * 200_000, owner=acme)
    assert_nothing_is_stored()


def test_the_hint_follows_the_commit(committed: None, acme: Owner, broker: redis.Redis) -> None:
    """Not before it, and at once after it; a bulk is out of the outbox then."""
    with transaction.atomic():
        run = submit("tests.add", 1, 2, owner=acme)
        submission = submit_many("tests.add", [{"x": 1, "y": 2}] * 10, owner=acme)
        assert hinted() == []
    assert hinted() == [run.id, *submission.runs.order_by("id").values_list("id", flat=True)]
    assert all(batch.run_ids == [run.id] for batch in Outbox.objects.all())


def test_trouble_after_the_commit_does_not_reach_the_caller(
    acme: Owner,
    settings: Settings,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    """The rows are committed: an error now would look as if they were not."""
    with django_capture_on_commit_callbacks(execute=True):
        submit("tests.add", 1, 2, owner=acme)
        settings.FAIRSHIFT = {"no such key": 1}


def test_a_coroutine_submits_too(committed: None, acme: Owner, broker: redis.Redis) -> None:
    """Both forms have an asynchronous twin."""

    async def both() -> tuple[Run, Submission]:
        run = await asubmit("tests.add", 1, 2, owner="acme")
        submission = await asubmit_many("tests.add", [{"x": 1, "y": 2}], owner="acme")
        await sync_to_async(connections.close_all)()
        return run, submission

    run, submission = asyncio.run(both())
    assert set(Run.objects.all()) == {run, submission.runs.get()}
    assert len(hinted()) == 2


def test_a_job_is_run_now_with_its_own_arguments_and_policies(acme: Owner) -> None:
    """What the job leaves open is decided as for any submit."""
    target = Target.objects.create(owner=acme, name="fw-1")
    job = Job.objects.create(
        owner=acme,
        key="nightly",
        task="tests.add",
        payload=b'[[], {"x": 1, "y": 2}, {}]',
        target=target,
        labels={"site": "berlin"},
        priority=0,
        max_attempts=2,
        retry_on=["OSError"],
        time_limit_seconds=60,
        deadline_seconds=600,
        lock_key="door",
    )
    run = job.run_now()
    assert (run.job, run.target, run.lock_key, run.labels) == (job, target, "acme:door", job.labels)
    assert (run.priority, run.max_attempts) == (0, 2)
    assert run.policy == {"retry_on": ["OSError"], "time_limit_seconds": 60}
    assert run.deadline_at is not None
    assert (run.deadline_at - run.created_at).total_seconds() == 600
