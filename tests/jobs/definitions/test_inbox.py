"""jobs/definitions/inbox.py: jobs by Celery message: in order, once, and none harmed by another's
fault.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from celery import Celery, current_app
from celery.result import AsyncResult
from django.db import DatabaseError

import tests.tasks  # noqa: F401  registers the tasks of scenes
from fleet import BrokerUnavailable
from fleet.broker import inbox as queue
from jobs import tasks
from jobs.core.errors import OptionError
from jobs.definitions import inbox
from jobs.definitions.fields import FIELDS
from jobs.definitions.upsert import upsert_jobs
from jobs.models import AuditEntry, InboxMark, Job, Owner
from jobs.runs import dispatch
from tests.jobs.scenes import at_once

NOTHING = {"done": 0, "refused": 0}


@pytest.fixture
def sender(broker: redis.Redis, settings: Any) -> Iterator[Celery]:
    """Another service's app: its broker, and nothing of Fairshift; all is open to it."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "INBOX_ALLOWED": ["*:*"]}
    app = Celery("elsewhere", broker=current_app.conf.broker_url, set_as_current=False)
    yield app
    app.close()


def add(key: str, **changes: Any) -> dict[str, Any]:
    return {"key": key, "task": "tests.add", "arguments": {"x": 1, "y": 2}, **changes}


def upsert(sender: Celery, *jobs: Any, owner: Any = "acme", **options: Any) -> str:
    sent = sender.send_task("fairshift.upsert_jobs", (owner, list(jobs)), queue="inbox", **options)
    return str(sent.id)


def delete(sender: Celery, *keys: Any, owner: Any = "acme") -> None:
    sender.send_task("fairshift.delete_jobs", (owner,), {"keys": list(keys)}, queue="inbox")


def priorities() -> dict[str, int | None]:
    return dict(Job.objects.values_list("key", "priority"))


def test_of_several_words_on_a_job_the_last_counts(sender: Celery, acme: Owner) -> None:
    """In the order of their sending, whatever they say, in one round."""
    for number in range(5):
        upsert(sender, add("a", priority=number), add(f"b{number}"))
    delete(sender, "b1", "b2", "never")
    upsert(sender, add("b2", priority=7))
    delete(sender, "b3")
    upsert(sender, add("a", priority=9))
    assert inbox.read() == {"done": 9, "refused": 0}
    assert priorities() == {"a": 9, "b0": None, "b2": 7, "b4": None}
    assert inbox.read() == NOTHING


def test_a_job_that_was_deleted_is_made_anew(sender: Celery, acme: Owner) -> None:
    """Not changed: it has another number, and no pause of the one before."""
    upsert_jobs(acme, [add("a")])
    Job.objects.update(paused_until="2031-01-01T00:00:00Z")
    before = Job.objects.get()
    delete(sender, "a")
    upsert(sender, add("a"))
    inbox.read()
    after = Job.objects.get()
    assert after.pk != before.pk and after.paused_until is None


BAD: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    (("acme", [add("b"), add("c", priority=10)]), {}, "priority"),
    (("acme", [{"key": "b", "task": "tests.add", "arguments": {"x": "one"}}]), {}, "argument"),
    (("acme", [add("b", **{"\x00\ud800": 1})]), {}, "is unknown"),
    (("acme", [add("\x00")]), {}, "key"),
    (("acme", "b"), {}, "is a list"),
    (("acme", None), {}, "is a list"),
    (("acme",), {}, "wrongly"),
    (("acme", [], []), {}, "wrongly"),
    (("acme", []), {"jobs": []}, "wrongly"),
    (("nobody", [add("b")]), {}, "no owner"),
    ((7, [add("b")]), {}, "slug"),
    (("a\x00", [add("b")]), {}, "slug"),
]


@pytest.mark.parametrize(("args", "kwargs", "problem"), BAD)
def test_a_bad_call_harms_no_other(
    sender: Celery, acme: Owner, args: tuple[Any, ...], kwargs: dict[str, Any], problem: str
) -> None:
    """It changes nothing, and operators and its sender find why."""
    upsert(sender, add("a"))
    bad = sender.send_task(
        "fairshift.upsert_jobs", args, kwargs, queue="inbox", ignore_result=False
    )
    good = upsert(sender, add("z"), ignore_result=False)
    assert inbox.read() == {"done": 2, "refused": 1}
    assert set(priorities()) == {"a", "z"}
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.details["messages"]) == ("refuse jobs", 1)
    assert entry.owner == (acme if args[0] == "acme" and problem != "wrongly" else None)
    [first] = entry.details["first"]
    assert first["id"] == bad.id
    assert problem in str(first["problems"])
    assert AsyncResult(good).state == "SUCCESS"
    result = AsyncResult(bad.id)
    assert result.state == "FAILURE" and problem in str(result.result)


def test_strange_messages_are_refused(sender: Celery, acme: Owner, broker: redis.Redis) -> None:
    """Another task, a delay, bytes that are nothing: they do not stay in the way."""
    sender.send_task("tests.add", (1, 2), queue="inbox")
    upsert(sender, add("late"), countdown=60)
    broker.lpush("inbox", b"\xff{")
    upsert(sender, add("a"))
    assert inbox.read() == {"done": 1, "refused": 3}
    assert set(priorities()) == {"a"}
    assert sum(map(broker.llen, queue.lists("inbox"))) == 0


def test_what_the_database_takes_from_nobody_is_found(
    sender: Celery, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check of ours may miss something: the call is to blame, and only it is refused."""
    lax = {**FIELDS, "priority": (lambda _name, value: value, None)}
    monkeypatch.setattr("jobs.definitions.spec.FIELDS", lax)
    monkeypatch.setattr("jobs.definitions.spec._check_limits", lambda *_: None)
    for number in range(7):
        upsert(sender, add(str(number), priority=77 if number == 3 else number))
    assert inbox.read() == {"done": 6, "refused": 1}
    assert set(priorities()) == set("012456")


def test_a_call_stays_until_it_is_committed(
    committed: None, sender: Celery, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that ends before its commit has done nothing; the next one does it all."""
    upsert(sender, add("a"))
    with monkeypatch.context() as patch:
        patch.setattr(inbox, "audit_refused", _raise)
        with pytest.raises(DatabaseError):
            inbox.read()
    assert priorities() == {}
    assert inbox.read() == {"done": 1, "refused": 0}
    assert set(priorities()) == {"a"}


def test_what_is_committed_is_not_done_again(
    committed: None, sender: Celery, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader ends between commit and Redis: what was said since by another way stands."""
    upsert(sender, add("a", priority=1))
    upsert(sender, add("b", priority=11))
    with monkeypatch.context() as patch:
        patch.setattr(queue, "drop", _raise)
        with pytest.raises(BrokerUnavailable):
            inbox.read()
    dispatch.broker.cache_clear()  # or it leaves Redis alone for a moment
    upsert_jobs(acme, [add("a", priority=2)])
    upsert(sender, add("c"))
    assert inbox.read()["refused"] == 0
    assert priorities() == {"a": 2, "c": None}
    assert AuditEntry.objects.count() == 1
    assert inbox.read() == NOTHING


def _raise(*_: Any, **__: Any) -> None:
    raise DatabaseError("gone")


def test_two_readers_do_not_overtake_each_other(
    committed: None, sender: Celery, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One reads at a time, also where the task's own lock does not hold."""
    monkeypatch.setattr(inbox, "CHUNK", 3)
    for number in range(30):
        upsert(sender, add("a", priority=number % 10), add(f"k{number}"))
    done = at_once(inbox.read, inbox.read)
    assert sum(one["done"] for one in done if isinstance(one, dict)) == 30, done
    assert Job.objects.count() == 31
    assert priorities()["a"] == 9
    assert InboxMark.objects.count() == 1, "of the list that had calls"


def test_on_another_queue_no_worker_carries_them_out(acme: Owner) -> None:
    """Any queue is open to whoever may write to the broker; the inbox alone asks for whom."""
    for verb, wanted in (tasks.upsert_jobs, [add("a")]), (tasks.delete_jobs, ["a"]):
        with pytest.raises(OptionError, match="is not 'inbox'"):
            verb("acme", wanted)
    assert not Job.objects.exists()


def test_nothing_is_open_unless_a_setting_names_it(
    sender: Celery, acme: Owner, settings: Any
) -> None:
    """Whoever may write to the broker would otherwise run any task for any owner."""
    del settings.FAIRSHIFT["INBOX_ALLOWED"]
    settings.FAIRSHIFT = {**settings.FAIRSHIFT}
    upsert_jobs(acme, [add("mine")])
    upsert(sender, add("a"))
    delete(sender, "mine")
    assert inbox.read() == {"done": 0, "refused": 2}
    assert set(priorities()) == {"mine"}
    assert "INBOX_ALLOWED" in AuditEntry.objects.get().reason


def test_only_named_owners_and_tasks_are_touched(
    sender: Celery, acme: Owner, northwind: Owner, settings: Any
) -> None:
    """Another owner's jobs, and jobs of other tasks, are neither made nor changed nor deleted."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "INBOX_ALLOWED": ["acme:tests.a*"]}
    other = {"key": "other", "task": "tests.sleep", "arguments": {"seconds": 1}}
    upsert_jobs(acme, [other])
    upsert_jobs(northwind, [add("a", priority=1)])
    upsert(sender, add("a", priority=2), owner="northwind")
    delete(sender, "a", owner="northwind")
    upsert(sender, add("b"), other | {"key": "c"})
    upsert(sender, add("other"), add("d"))
    delete(sender, "other")
    upsert(sender, add("good"), add("gone"))
    delete(sender, "gone", "never")
    assert inbox.read() == {"done": 2, "refused": 5}
    found = set(Job.objects.values_list("owner__slug", "key", "task", "priority"))
    assert found == {
        ("acme", "other", "tests.sleep", None),
        ("acme", "good", "tests.add", None),
        ("northwind", "a", "tests.add", 1),
    }
