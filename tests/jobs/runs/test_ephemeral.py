"""jobs/runs/ephemeral.py: runs without history start by their job's row, and nothing is written of
them.
"""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import redis
from django.utils import timezone

from fleet import Admission, AdmissionRequest, Hint, Refusal
from jobs.catalog.registry import job as job_task
from jobs.catalog.registry import resolve
from jobs.core.ids import scheduled_id
from jobs.models import Job, Missed, Owner
from jobs.runs.ephemeral import admit, publish
from jobs.wiring import application
from tests.jobs.scenes import living_worker, messages, silence, submitted
from tests.jobs.windows_world import calendar_of, window
from tests.jobs.without_history import (
    admission_request_of,
    due_hint,
    job_without_history,
    written_count,
)
from tests.logged import logged

NOW = datetime.now(UTC).replace(microsecond=0)


@job_task(
    name="tests.unkept.declared",
    max_attempts=7,
    backoff_seconds=11,
    time_limit_seconds=40,
    priority=8,
    deadline_seconds=60,
)
def declared() -> None: ...


@pytest.fixture
def job(acme: Owner) -> Job:
    return job_without_history(acme)


@pytest.fixture
def worker(db: None) -> UUID:
    return living_worker()


def answer_to(worker: UUID, ask: AdmissionRequest) -> Admission | Refusal:
    """Return what one ask is answered."""
    return admit(worker, [ask])[ask.key]


def admitted(worker: UUID, hint: Hint) -> Admission:
    """Return the admission of a run that nothing keeps from starting."""
    answer = answer_to(worker, admission_request_of(hint))
    assert isinstance(answer, Admission), answer
    return answer


def test_a_hint_is_admitted_by_its_job(worker: UUID, job: Job) -> None:
    """With the job's arguments, labels, policy and owner, as they are now: there is no copy.

    Due time and attempt are the hint's own.
    """
    hint = due_hint(job, NOW, attempt=2, token=5)
    Job.objects.filter(pk=job.pk).update(
        payload=b"[[], {}, {}]", labels={"site": "north"}, max_attempts=9
    )
    found = admitted(worker, hint)
    assert found.body == b"[[], {}, {}]"
    assert (found.run_id, found.token, found.attempt) == (str(scheduled_id(job.pk, NOW)), 5, 2)
    assert found.context == {
        "owner": "acme",
        "job": job.pk,
        "submission": None,
        "labels": {"site": "north"},
        "due_at": found.context["due_at"],
        "policy": {"max_attempts": 9},
    }
    assert datetime.fromisoformat(found.context["due_at"]) == NOW
    assert not found.is_kept


def test_a_policy_is_the_job_s_else_the_task_s_else_the_setting_s(
    worker: UUID, acme: Owner
) -> None:
    """As for runs with a row."""
    plain = admitted(worker, due_hint(job_without_history(acme)))
    assert plain.context["policy"] == {"max_attempts": 3}
    resolve(declared)
    own = {"backoff_seconds": 2.5, "retry_on": ["ValueError"], "soft_time_limit_seconds": 20.0}
    mixed = job_without_history(acme, key="mixed", task="tests.unkept.declared", **own)
    found = admitted(worker, due_hint(mixed))
    assert found.context["policy"] == {
        "max_attempts": 7,
        "backoff_seconds": 2.5,
        "time_limit_seconds": 40.0,
        "soft_time_limit_seconds": 20.0,
        "retry_on": ("ValueError",),
    }
    assert (found.soft_time_limit, found.time_limit) == (20.0, 40.0)


@pytest.mark.parametrize(
    "change",
    [
        {"enabled": False},
        {"history_policy": "full"},
        {"task": "tests.fail"},
        {"paused_until": timezone.now() + timedelta(hours=1)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_job_that_wants_no_such_run_has_none(
    worker: UUID, job: Job, change: dict[str, Any]
) -> None:
    """Switched off, with a history, of another task, or paused."""
    hint = due_hint(job)
    Job.objects.filter(pk=job.pk).update(**change)
    assert answer_to(worker, admission_request_of(hint)) is Refusal.GONE


def test_a_hint_goes_to_the_account_of_its_job_s_owner(
    worker: UUID, job: Job, northwind: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    """One that names another owner starts nothing: that one would be charged for it."""
    found = answer_to(worker, admission_request_of(due_hint(job, owner=northwind.slug)))
    assert found is Refusal.GONE
    assert [entry["event"] for entry in logged(caplog)] == ["foreign_hint"]


def test_a_paused_owner_s_hint_waits(worker: UUID, job: Job) -> None:
    """In the broker: no row would bring it back."""
    Owner.objects.update(paused_at=timezone.now())
    assert answer_to(worker, admission_request_of(due_hint(job))) is Refusal.BUSY


def test_a_worker_that_was_frozen_past_its_lease_starts_nothing(worker: UUID, job: Job) -> None:
    """Its messages are somebody else's by now."""
    silence(worker, seconds=60)
    assert answer_to(worker, admission_request_of(due_hint(job))) is Refusal.BUSY


@pytest.mark.parametrize("of", ["job", "task"])
def test_what_is_past_its_deadline_does_not_start(worker: UUID, acme: Owner, of: str) -> None:
    """Counted from the due time; a later attempt has started before, and a backfill is late."""
    if of == "job":
        job = job_without_history(acme, deadline_seconds=60)
    else:
        resolve(declared)
        job = job_without_history(acme, task="tests.unkept.declared")
    # Not NOW: that was when the tests were read.
    now = datetime.now(UTC)
    late = due_hint(job, now - timedelta(seconds=61))
    assert answer_to(worker, admission_request_of(late)) is Refusal.GONE
    admitted(worker, late._replace(attempt=2, token=2))
    admitted(worker, late._replace(submission=9))
    admitted(worker, due_hint(job, now - timedelta(seconds=30)))


def test_a_bad_ask_keeps_nobody_else_from_starting(worker: UUID, acme: Owner, job: Job) -> None:
    """A payload without a key, limits that contradict, a task of our own, a time past all years."""
    keyless = job_without_history(acme, key="keyless", payload_key=7)
    limits = {"soft_time_limit_seconds": 9.0, "time_limit_seconds": 5.0}
    torn = job_without_history(acme, key="torn", **limits)
    internal = job_without_history(acme, key="internal", task="fairshift.system.sweep")
    good = due_hint(job)
    far = good._replace(run_id=str(UUID(int=2**128 - 1)))
    bad = [due_hint(keyless), due_hint(torn), due_hint(internal), far]
    answers = admit(worker, [admission_request_of(hint) for hint in (*bad, good)])
    assert [answers[admission_request_of(hint).key] for hint in bad] == [Refusal.GONE] * 4
    assert isinstance(answers[admission_request_of(good).key], Admission)


def test_asks_of_both_kinds_go_each_to_its_own_door(worker: UUID, acme: Owner, job: Job) -> None:
    """Also two of one run: a forged hint has no say in what a row decides."""
    [run] = submitted(acme)
    forged = admission_request_of(due_hint(job))._replace(run_id=str(run.id))
    kept = AdmissionRequest(str(run.id), run.task)
    answers = application().admit(worker, [forged, kept])
    assert {key: answer.is_kept for key, answer in answers.items()} == {  # type: ignore[union-attr]
        kept.key: True,
        forged.key: False,
    }


@pytest.mark.usefixtures("committed")
def test_nothing_is_written(worker: UUID, job: Job, broker: redis.Redis) -> None:
    """Neither by an admission nor by the hint of another attempt."""
    Job.objects.update(name="any write is counted")
    before = written_count()
    Job.objects.update(name="any write is counted, again")
    assert written_count() == before + 1
    found = admitted(worker, due_hint(job))
    assert found.next_hint is not None
    publish([found.next_hint._replace(delay_seconds=0.0)])
    assert written_count() == before + 1
    [message] = messages()
    assert message["headers"]["fairshift"] == {
        "owner": "acme",
        "submission": None,
        "run": found.run_id,
        "token": 2,
        "job": job.pk,
    }
    assert message["headers"]["retries"] == 1


def minutes(count: int) -> list[datetime]:
    """Return so many minutes, the last one now."""
    return [NOW - timedelta(minutes=count - number) for number in range(count)]


def test_what_comes_outside_its_windows_is_recorded(worker: UUID, job: Job) -> None:
    """It is dropped, never in silence: one record from an opening to the next, with the count."""
    window(calendar_of(job.owner), opens_in=3_600, seconds=600)
    for due_at in minutes(3):
        for _ in range(2):
            assert answer_to(worker, admission_request_of(due_hint(job, due_at))) is Refusal.GONE
    both = [
        admission_request_of(due_hint(job, NOW)),
        admission_request_of(due_hint(job, NOW + timedelta(minutes=1))),
    ]
    assert set(admit(worker, both).values()) == {Refusal.GONE}
    [missed] = Missed.objects.all()
    assert (missed.reason, missed.count, missed.owner) == ("window", 5, job.owner)
    assert (missed.first_at, missed.last_at) == (minutes(3)[0], NOW + timedelta(minutes=1))


def test_inside_its_windows_it_starts_while_they_last(worker: UUID, job: Job) -> None:
    """And is ended with them where its calendar does that; nothing is recorded."""
    window(calendar_of(job.owner, end="hard"), opens_in=-60, seconds=70)
    found = admitted(worker, due_hint(job))
    assert found.time_limit is not None
    assert 5 < found.start_within <= found.time_limit <= 10
    assert not Missed.objects.exists()


@pytest.mark.parametrize("limits", [{"time_limit_seconds": 60}, {"soft_time_limit_seconds": 60}])
def test_what_does_not_fit_is_recorded_too(
    worker: UUID, acme: Owner, limits: dict[str, int]
) -> None:
    """By the job's limit; without one the task's counts."""
    resolve(declared)
    window(calendar_of(acme), opens_in=-60, seconds=100)
    job = job_without_history(acme, **limits)
    of_task = job_without_history(acme, key="mixed", task="tests.unkept.declared")
    assert answer_to(worker, admission_request_of(due_hint(job))) is Refusal.GONE
    admitted(worker, due_hint(job_without_history(acme, key="short")))
    assert (
        answer_to(worker, admission_request_of(due_hint(of_task, datetime.now(UTC))))
        is Refusal.GONE
    )
    assert Missed.objects.count() == 2
