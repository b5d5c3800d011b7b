"""jobs/definitions/upsert.py: jobs by their keys, in bulk, all or nothing, and again without an
effect.
"""

from datetime import datetime
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tests.tasks  # noqa: F401  registers the tasks of scenes
from jobs import delete_jobs, submit, upsert_jobs
from jobs.core import sql
from jobs.core.crypto import read_body
from jobs.core.errors import BatchError, OptionError, UnknownOwner
from jobs.definitions.spec import fault_of
from jobs.definitions.upsert import Upserted
from jobs.models import Attachment, Calendar, Job, Missed, Owner, Run, Target
from jobs.runs.submission import run_job
from tests.jobs.scenes import at_once, behind


def add(key: str, **changes: Any) -> dict[str, Any]:
    return {"key": key, "task": "tests.add", "arguments": {"x": 1, "y": 2}, **changes}


def versions() -> dict[str, tuple[str, datetime]]:
    """Return each job's row version (place on disk) and since when its schedule holds."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT key, ctid::text, xmin::text, xmax::text, effective_from FROM jobs_job"
        )
        return {key: tuple(rest) for key, *rest in cursor.fetchall()}


def test_jobs_are_made_changed_and_left_alone(acme: Owner) -> None:
    """By their keys; what is equal has no new version, and its schedule holds as before."""
    assert upsert_jobs("acme", [add("a"), add("b", interval_minutes=15)]) == Upserted(2, 0, 0)
    before = versions()
    changed = [add("a", priority=9), add("b", interval_minutes=15), add("c", cron="@daily")]
    assert upsert_jobs(acme, iter(changed)) == Upserted(1, 1, 1)
    after = versions()
    assert after["b"] == before["b"]
    # Only its schedule moves a job's beginning.
    assert after["a"][0] != before["a"][0] and after["a"][-1] == before["a"][-1]
    assert Job.objects.get(key="a").priority == 9
    assert upsert_jobs(acme, []) == Upserted(0, 0, 0)


def test_every_field_arrives(acme: Owner) -> None:
    """In the type of its column; what is left out the next time is its default again."""
    facts = {
        "name": "Sum ⚙",
        "labels": {"site": "berlin"},
        "lock_key": "core",
        "queue": "jobs",
        "cron": "0 4 * * 1",
        "zone": "Europe/Berlin",
        "smooth": True,
        "misfire": "all",
        "misfire_cap": 7,
        "misfire_deadline_seconds": 60.5,
        "overlap": "queue",
        "priority": 0,
        "max_attempts": 4,
        "backoff_seconds": 1.5,
        "backoff_cap_seconds": 9.0,
        "retry_on": ["TimeoutError", "a.B"],
        "give_up_on": ["ValueError"],
        "soft_time_limit_seconds": 5.0,
        "time_limit_seconds": 6.0,
        "deadline_seconds": 30.0,
        "history_policy": "full",
        "enabled": False,
    }
    times = {"start_at": "2030-01-01T00:00:00+00:00", "end_at": "2031-01-01T00:00:00+00:00"}
    upsert_jobs(acme, [add("a", target="sw-1", **facts, **times)])
    job = Job.objects.get()
    assert {name: getattr(job, name) for name in facts} == facts
    assert (job.start_at.isoformat(), job.end_at.isoformat()) == tuple(times.values())
    assert job.target == Target.objects.get(owner=acme, name="sw-1")
    assert read_body(job.payload, key=job.payload_key, place=job.place) == ([], {"x": 1, "y": 2})
    upsert_jobs(acme, [add("a")])
    job.refresh_from_db()
    assert (job.priority, job.labels, job.target, job.enabled) == (None, {}, None, True)
    assert (job.schedule, job.phase, job.shard) == ("manual", None, None)


def test_a_pause_is_the_operators(acme: Owner) -> None:
    """No upsert ends it."""
    upsert_jobs(acme, [add("a")])
    until = "2031-01-01T00:00:00+00:00"
    Job.objects.update(paused_until=until)
    upsert_jobs(acme, [add("a", priority=3)])
    assert Job.objects.get().paused_until.isoformat() == until


def test_a_place_is_given_once_and_stays_as_long_as_the_interval(acme: Owner) -> None:
    """Phase within the interval, shard within the minute; another interval has another place."""
    jobs = [add(f"j{n}", interval_minutes=60) for n in range(240)]
    upsert_jobs(acme, jobs)

    def places() -> dict[str, tuple[Any, Any]]:
        return {job.key: (job.phase, job.shard) for job in Job.objects.all()}

    first = places()
    assert len({60 * 60 * phase + shard for phase, shard in first.values()}) == 240
    # Evenly: no minute of the hour has much more than its four.
    counts = [sum(phase == minute for phase, _ in first.values()) for minute in range(60)]
    assert max(counts) <= 6 and min(counts) >= 2
    upsert_jobs(acme, [{**job, "priority": 1} for job in jobs])
    assert places() == first
    upsert_jobs(acme, [{**job, "interval_minutes": 7} for job in jobs])
    assert all(phase < 7 and shard < 120 for phase, shard in places().values())
    upsert_jobs(acme, [{**jobs[0], "interval_minutes": None, "cron": "@daily"}])
    assert places()["j0"] == (None, None)
    upsert_jobs(acme, [{**jobs[0], "interval_minutes": None, "cron": "@daily", "smooth": True}])
    assert None not in places()["j0"]


def test_all_or_nothing_and_every_wrong_element_is_listed(acme: Owner) -> None:
    """By index and field; nothing of the bulk is stored."""
    bad = [add("a"), add("b", priorty=1), "c", add("a"), add("", cron="x")]
    with pytest.raises(BatchError) as caught:
        upsert_jobs(acme, bad)  # type: ignore[list-item]
    assert [(index, *fault_of(error)) for index, error in caught.value.problems[:3]] == [
        (1, "priorty", "is unknown; did you mean priority?"),
        (2, "job", "is a mapping of names of fields to values"),
        (3, "key", "'a' is given twice"),
    ]
    assert {fault_of(error)[0] for index, error in caught.value.problems if index == 4} == {
        "key",
        "cron",
    }
    assert "4 of 5 elements are wrong" in str(caught.value)
    assert not Job.objects.exists() and not Target.objects.exists()


def test_what_cannot_be_a_bulk_is_refused(acme: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the limit."""
    monkeypatch.setattr("jobs.definitions.upsert.BATCH_LIMIT", 2)
    with pytest.raises(OptionError, match="at most 2 elements; these are 3"):
        upsert_jobs(acme, [add(str(n)) for n in range(3)])
    with pytest.raises(UnknownOwner):
        upsert_jobs("nobody", [add("a")])
    monkeypatch.setattr("jobs.definitions.upsert.BYTES_LIMIT", 10)
    with pytest.raises(OptionError, match="split"):
        upsert_jobs(acme, [add("a")])
    with pytest.raises(OptionError, match="jobs: is a list of mappings, one for each job, not"):
        upsert_jobs(acme, add("a"))  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="keys: is a list of keys, not str"):
        delete_jobs(acme, "a")
    with pytest.raises(OptionError, match="keys"):
        delete_jobs(acme, ["\x00"])


def test_deleting_is_idempotent_and_runs_keep_their_history(acme: Owner) -> None:
    """Their rows go on naming the job's number; what was noted of missed times goes."""
    upsert_jobs(acme, [add("a"), add("b")])
    job = Job.objects.get(key="a")
    run = run_job(job)
    moment = "2030-01-01T00:00:00Z"
    Missed.objects.create(
        job=job, owner=acme, first_at=moment, last_at=moment, count=1, reason="outage"
    )
    submit("tests.add", 1, 2, owner=acme)
    assert delete_jobs("acme", ["a", "a", "never"]) == 1
    assert delete_jobs("acme", ["a"]) == delete_jobs("acme", []) == 0
    sql.query("SET CONSTRAINTS ALL IMMEDIATE")
    assert Run.objects.filter(job_id=job.pk).get().pk == run.pk
    assert not Missed.objects.exists()
    assert list(Job.objects.values_list("key", flat=True)) == ["b"]


def test_what_is_noted_of_a_job_while_it_is_deleted_goes_with_it(
    committed: None, acme: Owner
) -> None:
    """Who deletes it waits for who is at it, and then sees what that one has noted."""
    upsert_jobs(acme, [add("a")])
    job = Job.objects.get(key="a")
    moment = "2030-01-01T00:00:00Z"
    with behind(lambda: delete_jobs(acme, ["a"])) as (begin, outcomes):
        Job.objects.select_for_update().get(pk=job.pk)
        begin()
        Missed.objects.create(
            job=job, owner=acme, first_at=moment, last_at=moment, count=1, reason="outage"
        )
        Attachment.objects.create(
            calendar=Calendar.objects.create(owner=acme, name="nights"), job=job
        )
    assert outcomes == [1]
    assert not Missed.objects.exists() and not Attachment.objects.exists()


OPERATIONS = st.lists(
    st.dictionaries(
        st.sampled_from(["a", "b", "c", "ä", "Z"]),
        st.one_of(
            st.none(),
            st.fixed_dictionaries(
                {},
                optional={
                    "interval_minutes": st.sampled_from([1, 7, 64]),
                    "priority": st.integers(0, 9),
                    "name": st.sampled_from(["", "x", "‽ \\ \" '"]),
                    "labels": st.dictionaries(st.sampled_from("pq"), st.text("ab", max_size=2)),
                    "retry_on": st.lists(st.sampled_from(["KeyError", "a.B"]), max_size=2),
                },
            ),
        ),
        min_size=1,
    ),
    min_size=1,
    max_size=4,
)


@settings(
    max_examples=settings.default.max_examples // 3,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(OPERATIONS)
def test_jobs_are_what_was_last_said_of_them(
    acme: Owner, bulks: list[dict[str, dict[str, Any] | None]]
) -> None:
    """After any bulks and deletions; saying the last again changes nothing, and counts are true."""
    Job.objects.all().delete()
    model: dict[str, dict[str, Any]] = {}
    for bulk in bulks:
        wanted = {key: facts for key, facts in bulk.items() if facts is not None}
        gone = [key for key, facts in bulk.items() if facts is None]
        done = upsert_jobs(acme, [add(key, **facts) for key, facts in wanted.items()])
        assert done.created == len(wanted.keys() - model.keys())
        assert done.created + done.updated + done.unchanged == len(wanted)
        assert done.unchanged >= sum(model.get(key) == facts for key, facts in wanted.items())
        assert delete_jobs(acme, gone) == len(model.keys() & set(gone))
        model = {key: facts for key, facts in {**model, **wanted}.items() if key not in gone}
    before = versions()
    again = upsert_jobs(acme, [add(key, **facts) for key, facts in model.items()])
    assert again == Upserted(0, 0, len(model))
    assert versions() == before
    for job in Job.objects.all():
        facts = model.pop(job.key)
        assert {name: getattr(job, name) for name in facts} == facts
        assert (job.phase is None) == ("interval_minutes" not in facts)
    assert not model


def test_bulks_in_unlike_orders_do_not_deadlock(committed: None, acme: Owner) -> None:
    """Half of the jobs are there, half are made: by one bulk, and the other finds or changes them.

    Each bulk comes with its own values.
    """
    keys = [f"k{n:03}" for n in range(200)]
    upsert_jobs(acme, [add(key) for key in reversed(keys[::2])])

    def bulk(order: list[str], priority: int) -> Upserted:
        return upsert_jobs(acme, [add(key, priority=priority) for key in order])

    for turn in range(2):
        done = at_once(
            lambda turn=turn: bulk(keys, 2 * turn),
            lambda turn=turn: bulk(keys[::-1], 2 * turn + 1),
        )
        assert all(isinstance(one, Upserted) for one in done), done
        assert {job.priority for job in Job.objects.all()} in ({2 * turn}, {2 * turn + 1})
        made = sum(one.created for one in done if isinstance(one, Upserted))
        assert made == (100 if turn == 0 else 0)
    assert Job.objects.count() == 200
