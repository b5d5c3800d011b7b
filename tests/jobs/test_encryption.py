"""Encryption at rest: nothing of arguments, results and errors is readable in any table."""

import json
from typing import Any

import pytest
from celery import current_app, states
from celery.result import AsyncResult
from django.core.exceptions import ImproperlyConfigured
from django_celery_results.models import TaskResult

from fleet import Admission, Kind, Refusal
from jobs import delete_jobs, job, submit, submit_many, upsert_jobs
from jobs.api.jobs.schemas import JobDetails
from jobs.api.runs.schemas import RunDetails
from jobs.checks.encryption import check_encryption
from jobs.core import sql
from jobs.core.crypto import Damaged, UnknownKey
from jobs.core.states import State
from jobs.definitions.single import change_job, create_job
from jobs.models import Attempt, Job, Owner, Run
from jobs.recurring.trigger import make_runs
from jobs.runs.manual_retry import retry_run
from jobs.runs.reads.story import arguments_text
from jobs.runs.renamed_tasks import move_task
from jobs.runs.submission import run_job
from jobs.runs.unblocking import publish_with_known_key
from jobs.schedules import slot_of
from jobs.system.reencryption import reencrypt
from tests.jobs.keys import KEY_1, KEY_2, use_ring
from tests.jobs.recurring.scenes import at
from tests.jobs.scenes import admitted, ask, hinted, living_worker, recorded, superuser
from tests.jobs.scenes import states as states_of

CANARY = "kolibri-4711"


@job(name="tests.note")
def note(text: Any) -> Any:
    return text


@job(name="tests.note_again")
def note_again(text: Any) -> Any:
    return text


_COLUMNS = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = 'public' AND data_type IN (
    'text', 'character varying', 'bytea', 'jsonb', 'json', 'ARRAY')
"""


def columns_with(word: str) -> list[str]:
    """Return the columns of all tables in which a word can be read, as text or as bytes."""
    found = []
    for column in sql.query(_COLUMNS):
        table, name = column["table_name"], column["column_name"]
        count = (
            f'SELECT count(*) AS count FROM "{table}" '
            f'WHERE "{name}"::text LIKE %s OR "{name}"::text LIKE %s'
        )
        [row] = sql.query(count, [f"%{word}%", f"%{word.encode().hex()}%"])
        if row["count"]:
            found.append(f"{table}.{name}")
    return found


def job_of(owner: Owner, key: str = "nightly", **fields: Any) -> dict[str, Any]:
    return {"key": key, "task": "tests.note", "arguments": {"text": CANARY}, **fields}


def test_arguments_are_encrypted_however_they_come(acme: Owner, encrypted: None) -> None:
    """Single, many, delayed, of a job, retried with others: each is read where it belongs."""
    one = submit("tests.note", CANARY, owner=acme)
    by_slug = submit("tests.note", CANARY, owner="acme")
    later = submit("tests.note", CANARY, owner=acme, countdown=60)
    submit_many("tests.note", [{"text": CANARY}] * 2, owner=acme)
    upsert_jobs(acme, [job_of(acme)])
    run_job(Job.objects.get(key="nightly"))
    one.cancel()
    retry_run(one, arguments={"text": f"{CANARY}!"})
    assert columns_with(CANARY) == []
    assert one.arguments == ([], {"text": f"{CANARY}!"})
    for run in (by_slug, later, *Run.objects.exclude(pk=one.pk)):
        assert run.payload_key == 1
        assert run.arguments == ([], {"text": CANARY})
        assert Run.objects.get(pk=run.pk).arguments == ([], {"text": CANARY})


def test_an_owner_that_is_not_what_its_object_says_is_read_anew(
    acme: Owner, encrypted: None
) -> None:
    """The payload is encrypted for a slug, so the statement makes sure that it is the owner's."""
    run = submit("tests.note", CANARY, owner=Owner(pk=acme.pk, slug="northwind"))
    assert Run.objects.get(pk=run.pk).arguments == ([], {"text": CANARY})


def test_a_run_starts_with_its_arguments_and_ends_with_its_result(
    acme: Owner, encrypted: None
) -> None:
    """The worker gets them in clear; the row has neither."""
    run = submit("tests.note", CANARY, owner=acme)
    admission = admitted(living_worker(), run)
    assert CANARY.encode() in admission.body
    recorded(admission, Kind.STARTED)
    recorded(admission, Kind.SUCCEEDED, result=f'"{CANARY}"'.encode())
    assert columns_with(CANARY) == []
    run.refresh_from_db()
    assert (run.state, run.result_key, run.result_value) == (State.SUCCEEDED, 1, CANARY)


def test_an_error_is_encrypted_for_the_run_and_for_each_attempt(
    acme: Owner, encrypted: None
) -> None:
    """Only its class stays readable, by which failures are grouped."""
    run = submit("tests.note", 1, owner=acme, max_attempts=2)
    for number, kind in enumerate((Kind.RETRYING, Kind.FAILED)):
        if number:
            Run.objects.filter(pk=run.pk).update(state="queued")
        facts = {"error_type": "ValueError", "error_message": f"{CANARY} {number}"}
        recorded(admitted(living_worker(), run), kind, **facts, traceback=f"at {CANARY}")
    assert columns_with(CANARY) == []
    run.refresh_from_db()
    assert (run.error_type, run.error_message) == ("ValueError", "")
    assert run.error_text == f"{CANARY} 1"
    texts = [attempt.texts(run) for attempt in run.attempts]
    assert texts == [(f"{CANARY} {number}", f"at {CANARY}") for number in range(2)]
    # Swapped between attempts, they are noticed.
    first, second = run.attempts
    first.error_data = second.error_data
    assert "is not of this row" in first.texts(run)[0]


def test_celery_s_stored_result_is_encrypted(acme: Owner, encrypted: None) -> None:
    """Its result, its error and its traceback; Celery reads them as ever."""
    backend = current_app.backend
    backend.store_result("one", {"a": CANARY}, states.SUCCESS)
    error = ValueError(CANARY)
    backend.store_result("two", error, states.FAILURE, traceback=f"at {CANARY}")
    assert columns_with(CANARY) == []
    assert AsyncResult("one").get() == {"a": CANARY}
    failed = AsyncResult("two")
    assert (failed.state, str(failed.result)) == (states.FAILURE, CANARY)
    assert failed.traceback == f"at {CANARY}"
    other = TaskResult.objects.get(task_id="two").result
    TaskResult.objects.filter(task_id="one").update(result=other)
    assert "cannot be read" in AsyncResult("one").get()


# --- jobs ----------------------------------------------------------------------------------


def test_a_due_run_reads_what_was_copied_from_its_job(acme: Owner, encrypted: None) -> None:
    """The engine copies the bytes inside the database; the run is read also without the job."""
    upsert_jobs(acme, [job_of(acme, interval_minutes=5)])
    job = Job.objects.get()
    make_runs([(job.pk, slot_of(at(5)))])
    run = Run.objects.get(job=job)
    assert bytes(run.payload) == bytes(job.payload)
    assert b"kolibri" in admitted(living_worker(), run).body if run.state == "queued" else True
    delete_jobs(acme, ["nightly"])
    assert Run.objects.get(pk=run.pk).arguments == ([], {"text": CANARY})


def test_an_upsert_of_the_same_job_changes_nothing(acme: Owner, encrypted: None) -> None:
    """One, and many: equal arguments have equal bytes. With a new key they are written once."""
    many = [job_of(acme, key) for key in ("a", "b", "c")]
    assert upsert_jobs(acme, many).created == 3
    assert upsert_jobs(acme, many).unchanged == 3
    assert upsert_jobs(acme, many[:1]).unchanged == 1
    assert upsert_jobs(acme, [job_of(acme, "d")]).created == 1
    assert upsert_jobs(acme, [job_of(acme, "d", arguments={"text": "other"})]).updated == 1
    assert len({bytes(each.payload) for each in Job.objects.all()}) == 4
    for each in Job.objects.exclude(key="d"):
        assert run_job(each).arguments == ([], {"text": CANARY})


def test_a_job_that_was_made_anew_meanwhile_is_written_for_its_new_id(
    acme: Owner, encrypted: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its arguments are bound to its id, so they are encrypted once more."""
    from jobs.definitions import by_key

    upsert_jobs(acme, [job_of(acme)])
    real = by_key._sealed
    seen: list[Any] = []

    def late(named: Any, spec: Any) -> Any:
        found = real(named, spec)
        if not seen:
            delete_jobs(acme, ["nightly"])
            Job.objects.create(owner=acme, key="nightly", task="tests.note", payload=b"[[],{},{}]")
        seen.append(found)
        return found

    monkeypatch.setattr(by_key, "_sealed", late)
    upsert_jobs(acme, [job_of(acme)])
    assert len(seen) == 2
    assert run_job(Job.objects.get()).arguments == ([], {"text": CANARY})


def test_a_renamed_task_takes_its_encrypted_runs_and_jobs_along(
    acme: Owner, encrypted: None
) -> None:
    """They are read, checked against the other task, and encrypted again."""
    run = submit("tests.note", CANARY, owner=acme)
    upsert_jobs(acme, [job_of(acme)])
    moved = move_task("tests.note", to="tests.note_again")
    assert (moved.runs, moved.jobs, moved.refused) == (1, 1, 0)
    assert columns_with(CANARY) == []
    run.refresh_from_db()
    assert run.arguments == ([], {"text": CANARY}) == run_job(Job.objects.get()).arguments


# --- keys ----------------------------------------------------------------------------------


def test_a_run_whose_key_is_missing_waits_for_it(
    settings: Any, acme: Owner, committed: None
) -> None:
    """No attempt is spent and nothing is lost; when a worker with the key boots, it starts."""
    use_ring(settings, KEY_2)
    run = submit("tests.note", CANARY, owner=acme)
    use_ring(settings, KEY_1)
    worker = living_worker()
    assert ask(worker, [run]) == [Refusal.WAITS]
    run.refresh_from_db()
    assert (run.state, run.attempt_count, run.token, run.blocked_by) == ("queued", 0, 0, "key")
    assert run.why_waiting() == "Encryption key 2 is missing: no worker of queue 'jobs' has it."
    with pytest.raises(UnknownKey, match="key 2 is missing"):
        _ = run.arguments
    assert publish_with_known_key() == 0
    use_ring(settings, KEY_1, KEY_2)
    other = living_worker("w2@here")  # its boot publishes the run
    assert run.id in hinted()
    assert isinstance(ask(other, [run])[0], Admission)
    assert states_of(run) == ["queued", "admitted"]


def test_a_run_whose_key_another_worker_has_is_given_back(settings: Any, acme: Owner) -> None:
    """As in a deploy that adds a key: it does not wait for the sweep."""
    use_ring(settings, KEY_1, KEY_2)
    living_worker("new@here")
    run = submit("tests.note", CANARY, owner=acme)
    use_ring(settings, KEY_1)
    assert ask(living_worker("old@here"), [run]) == [Refusal.BUSY]
    run.refresh_from_db()
    assert (run.state, run.attempt_count, run.blocked_by) == ("queued", 0, "")


@pytest.mark.parametrize("spoil", ["truncated", "changed", "swapped", "other key"])
def test_a_spoilt_payload_fails_its_own_run_with_a_named_cause(
    acme: Owner, encrypted: None, spoil: str
) -> None:
    """The others of the batch are admitted."""
    spoilt, good = submit("tests.note", 1, owner=acme), submit("tests.note", 2, owner=acme)
    data = bytes(spoilt.payload)
    bad = {
        "truncated": data[:20],
        "changed": data[:-1] + bytes([data[-1] ^ 1]),
        "swapped": bytes(good.payload),
        "other key": data[:1] + (2).to_bytes(2) + data[3:],
    }
    Run.objects.filter(pk=spoilt.pk).update(payload=bad[spoil])
    answers = ask(living_worker(), [spoilt, good])
    assert answers[0] is Refusal.GONE and isinstance(answers[1], Admission)
    spoilt.refresh_from_db()
    assert (spoilt.state, spoilt.history[-1][2]) == ("failed", "unreadable")
    assert spoilt.error_type == "Damaged"
    assert "the payload is" in spoilt.error_text
    with pytest.raises(Damaged):
        _ = spoilt.arguments


def test_rows_from_before_the_ring_are_read_as_they_are(settings: Any, acme: Owner) -> None:
    """Encryption may be turned on at any time; until then, arguments are found in clear."""
    run = submit("tests.note", CANARY, owner=acme)
    upsert_jobs(acme, [job_of(acme)])
    assert {"jobs_run.payload", "jobs_job.payload"} <= set(columns_with(CANARY))
    use_ring(settings, KEY_1)
    assert Run.objects.get(pk=run.pk).arguments == ([], {"text": CANARY})
    assert CANARY.encode() in admitted(living_worker(), run).body


def require(settings: Any, *keys: str) -> None:
    """Have a ring, and refuse rows in clear."""
    use_ring(settings, *keys)
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "ENCRYPTION_REQUIRED": True}


CLEAR_BODY = json.dumps([[], {"text": CANARY}, {}]).encode()
CLEAR_TEXTS = json.dumps([CANARY]).encode()


def test_arguments_in_clear_are_refused_once_they_have_to_be_encrypted(
    settings: Any, acme: Owner
) -> None:
    """A writer of the database without a key gets nothing run; other runs of the batch start."""
    require(settings, KEY_1)
    forged, good = submit("tests.note", 1, owner=acme), submit("tests.note", 2, owner=acme)
    Run.objects.filter(pk=forged.pk).update(payload=CLEAR_BODY, payload_key=0)
    answers = ask(living_worker(), [forged, good])
    assert answers[0] is Refusal.GONE and isinstance(answers[1], Admission)
    forged.refresh_from_db()
    assert (forged.state, forged.history[-1][2]) == ("failed", "unreadable")
    assert "the payload is not encrypted, and ENCRYPTION_REQUIRED is on" in forged.error_text
    shown = RunDetails.of_run(forged, superuser())
    assert shown.arguments is None and "is not encrypted" in (shown.unreadable or "")


def test_no_other_field_in_clear_is_read(settings: Any, acme: Owner) -> None:
    """Results, error texts, arguments of jobs, what Celery stores."""
    require(settings, KEY_1)
    run = submit("tests.note", 1, owner=acme)
    Run.objects.filter(pk=run.pk).update(
        result=CLEAR_TEXTS, result_key=0, error_data=CLEAR_TEXTS, error_key=0
    )
    run.refresh_from_db()
    with pytest.raises(Damaged, match="result is not encrypted"):
        _ = run.result_value
    assert "is not encrypted" in run.error_text and CANARY not in run.error_text
    made = create_job(acme, job_of(acme))
    assert made is not None
    Job.objects.filter(pk=made.pk).update(payload=CLEAR_BODY, payload_key=0)
    with pytest.raises(Damaged, match="payload is not encrypted"):
        run_job(Job.objects.select_related("owner").get(pk=made.pk))
    TaskResult.objects.create(
        task_id="forged",
        status=states.SUCCESS,
        result=json.dumps(CANARY),
        content_type="application/json",
        content_encoding="utf-8",
    )
    assert CANARY not in str(AsyncResult("forged").result)


def test_reencryption_does_not_accept_what_is_refused(settings: Any, acme: Owner) -> None:
    """It would be encrypted, and run. With the setting off, as after a restore, it is accepted."""
    use_ring(settings, KEY_1)
    forged = submit("tests.note", 1, owner=acme)
    Run.objects.filter(pk=forged.pk).update(payload=CLEAR_BODY, payload_key=0)
    require(settings, KEY_1)
    done = reencrypt(1)
    assert (done.rewritten["runs"], sum(done.problems.values())) == (0, 1)
    with pytest.raises(ImproperlyConfigured, match="ENCRYPTION_REQUIRED is on"):
        reencrypt(0)
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "ENCRYPTION_REQUIRED": False}
    assert reencrypt(1).rewritten["runs"] == 1
    require(settings, KEY_1)
    assert isinstance(ask(living_worker(), [forged])[0], Admission)


def test_encryption_that_is_required_needs_a_ring(settings: Any, acme: Owner) -> None:
    """Else rows would be stored that are refused; the check names both settings."""
    require(settings)
    with pytest.raises(ImproperlyConfigured, match=r"REQUIRED.*ENCRYPTION_KEYS"):
        submit("tests.note", 1, owner=acme)
    assert [one.id for one in check_encryption()] == ["fairshift.E034"]


def test_no_page_answer_or_export_shows_a_secret(acme: Owner, encrypted: None) -> None:
    """Also to those who see arguments; a retry with what was shown keeps the value."""
    run = submit("tests.note", {"text": "x", "password": CANARY}, owner=acme)
    shown = RunDetails.of_run(run, superuser())
    assert CANARY not in arguments_text(run) + shown.model_dump_json()
    assert shown.arguments is not None and shown.arguments.kwargs["text"]["text"] == "x"
    run.cancel()
    retry_run(run, arguments={"text": {"text": "y", "password": "••••"}})
    assert run.arguments[1] == {"text": {"text": "y", "password": CANARY}}
    spec = job_of(acme, arguments={"text": {"token": CANARY}})
    job_row = create_job(acme, spec)
    assert job_row is not None
    job_row = Job.objects.select_related("owner").get(pk=job_row.pk)
    assert CANARY not in JobDetails.of_job(job_row, with_arguments=True).model_dump_json()
    change_job(job_row, {**spec, "priority": 3, "arguments": {"text": {"token": "••••"}}})
    assert run_job(Job.objects.get()).arguments[1] == {"text": {"token": CANARY}}


def test_each_text_that_cannot_be_read_says_which_key_is_missing(
    settings: Any, acme: Owner
) -> None:
    """Where a page shows the text, or an answer has it; all other fields are there."""
    use_ring(settings, KEY_2)
    run = submit("tests.note", CANARY, owner=acme)
    recorded(admitted(living_worker(), run), Kind.FAILED, error_type="E", error_message=CANARY)
    use_ring(settings)
    run.refresh_from_db()
    shown = RunDetails.of_run(run, superuser())
    assert (shown.arguments, shown.task) == (None, "tests.note")
    texts = (shown.unreadable, run.error_text, Attempt.objects.get().texts(run)[0])
    assert set(texts) == {"cannot be read (key 2 is missing)"}
