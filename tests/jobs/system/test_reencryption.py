"""jobs/system/reencryption.py: rows change their key while everything runs, and nothing else."""

from typing import Any

import pytest
from celery import current_app, states
from celery.app.task import Context
from celery.result import AsyncResult
from django.core.exceptions import ImproperlyConfigured

from fleet import Kind
from jobs import submit, upsert_jobs
from jobs.models import Attempt, Job, Owner, Run
from jobs.recurring.trigger import make_runs
from jobs.schedules import slot_of
from jobs.system import reencryption
from jobs.system.reencryption import keys_in_use, reencrypt
from tests.jobs.keys import KEY_1, KEY_2, use_ring
from tests.jobs.recurring.scenes import at
from tests.jobs.scenes import admitted, living_worker, recorded

PARTS = ("arguments", "attempts", "celery", "errors", "jobs", "results")


def used() -> dict[str, set[int]]:
    """Return the keys that each part is stored under."""
    rows = keys_in_use()
    return {part: {row["key"] for row in rows if row["part"] == part} for part in PARTS}


def all_under(key: int) -> dict[str, set[int]]:
    return {part: {key} for part in PARTS}


@pytest.fixture
def stored(acme: Owner) -> list[Run]:
    """A run that failed, one that succeeded, one of a job, and a result of Celery."""
    failed, done = (submit("tests.add", 1, n, owner=acme) for n in (2, 3))
    worker = living_worker()
    facts = {"error_type": "E", "error_message": "no …", "traceback": "at x"}
    recorded(admitted(worker, failed), Kind.FAILED, **facts)
    recorded(admitted(worker, done), Kind.SUCCEEDED, result=b"4")
    upsert_jobs(acme, [{"key": "a", "task": "tests.add", "arguments": {"x": 1, "y": 9}}])
    job = Job.objects.get()
    make_runs([(job.pk, slot_of(at(5)))])
    current_app.backend.store_result("t", {"n": 1}, states.SUCCESS)
    facts = {"traceback": "tb", "request": Context({"id": "e"})}
    current_app.backend.store_result("e", ValueError("x"), states.FAILURE, **facts)
    return [failed, done, Run.objects.get(job=job)]


def assert_readable(stored: list[Run]) -> None:
    failed, done, of_job = (Run.objects.get(pk=run.pk) for run in stored)
    assert [run.arguments[1]["y"] for run in (failed, done, of_job)] == [2, 3, 9]
    assert (failed.error_text, done.result_value) == ("no …", 4)
    assert Attempt.objects.get(run_id=failed.pk).texts(failed) == ("no …", "at x")
    assert Job.objects.get().run_now().arguments[1] == {"x": 1, "y": 9}
    assert AsyncResult("t").get() == {"n": 1}
    assert (str(AsyncResult("e").result), AsyncResult("e").traceback) == ("x", "tb")


def test_every_row_moves_to_the_new_key(settings: Any, encrypted: None, stored: list[Run]) -> None:
    """Then the old one may go: nothing needs it. A second call finds nothing to do."""
    assert used() == all_under(1)
    use_ring(settings, KEY_1, KEY_2)
    done = reencrypt(2)
    assert done.rewritten == {"runs": 3, "attempts": 1, "jobs": 1, "results of Celery": 2}
    assert done.left == 0
    assert used() == all_under(2)
    assert reencrypt(2).rewritten.total() == 0
    use_ring(settings, KEY_2)
    assert_readable(stored)


def test_clear_rows_are_encrypted_and_back(settings: Any, stored: list[Run]) -> None:
    """Encryption may be turned on, and off again, for what is there already."""
    assert used() == all_under(0)
    use_ring(settings, KEY_1)
    assert reencrypt(1).problems == {}
    assert used() == all_under(1)
    assert Run.objects.get(pk=stored[0].pk).error_message == ""
    assert_readable(stored)
    Job.objects.get().runs.exclude(pk=stored[2].pk).delete()
    assert reencrypt(0).problems == {}
    use_ring(settings)
    assert used() == all_under(0)
    assert_readable(stored)


def test_a_job_stays_equal_for_an_upsert(settings: Any, encrypted: None, acme: Owner) -> None:
    """Its schedule stays in effect, and the same arguments under the new key are no change."""
    jobs = [{"key": "a", "task": "tests.add", "arguments": {"x": 1, "y": 9}}]
    upsert_jobs(acme, jobs)
    before = Job.objects.get().effective_from
    use_ring(settings, KEY_1, KEY_2)
    reencrypt(2)
    assert Job.objects.get().effective_from == before
    assert upsert_jobs(acme, jobs).unchanged == 1


def test_a_stopped_call_is_continued(
    settings: Any, encrypted: None, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch is committed, so nothing of it is lost."""
    monkeypatch.setattr(reencryption, "BATCH", 2)
    runs = [submit("tests.add", 1, n, owner=acme) for n in range(5)]
    use_ring(settings, KEY_1, KEY_2)

    def stop(_done: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reencrypt(2, report=stop)
    assert Run.objects.filter(payload_key=2).count() == 2
    assert reencrypt(2).rewritten["runs"] == 3
    assert [Run.objects.get(pk=run.pk).arguments[1]["y"] for run in runs] == [0, 1, 2, 3, 4]


def test_a_row_that_changes_meanwhile_keeps_its_change(
    settings: Any, encrypted: None, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result that is recorded between the read and the write is not overwritten."""
    run = submit("tests.add", 1, 2, owner=acme)
    admission = admitted(living_worker(), run)
    use_ring(settings, KEY_1, KEY_2)
    real = reencryption.sql.run
    calls: list[str] = []

    def late(name: str, given: Any) -> Any:
        rows = real(name, given)
        if name == "system/other_key_runs" and not calls:
            calls.append(name)
            use_ring(settings, KEY_1)
            recorded(admission, Kind.SUCCEEDED, result=b"3")
            use_ring(settings, KEY_1, KEY_2)
        return rows

    monkeypatch.setattr(reencryption.sql, "run", late)
    done = reencrypt(2)
    assert (done.rewritten["runs"], done.left) == (1, 0)
    run.refresh_from_db()
    assert (run.result_key, run.payload_key, run.result_value) == (2, 2, 3)


def test_what_cannot_be_read_is_counted_and_left(
    settings: Any, encrypted: None, acme: Owner
) -> None:
    """With the reason; all else is rewritten."""
    spoilt, good = (submit("tests.add", 1, n, owner=acme) for n in range(2))
    Run.objects.filter(pk=spoilt.pk).update(payload=bytes(good.payload))
    use_ring(settings, KEY_1, KEY_2)
    done = reencrypt(2)
    assert done.rewritten["runs"] == 1
    [(problem, count)] = done.problems.items()
    assert "is not of this row" in problem and count == 1


def test_a_key_that_is_not_in_the_ring_is_refused(encrypted: None) -> None:
    """Before any row is touched."""
    with pytest.raises(ImproperlyConfigured, match="has no key 2"):
        reencrypt(2)
