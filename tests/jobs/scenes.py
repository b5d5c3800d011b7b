"""What scenes of the core are made of: runs, living workers, admissions, reports, threads."""

import base64
import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest
import redis
from celery import current_app
from django.contrib.auth.models import User
from django.db import connection, transaction
from pytest_django import Settings

from fleet import Admission, AdmissionRequest, Kind, Node, Refusal, Report, is_hint
from fleet.keys import queue_key
from fleet.transport.envelope import parsed
from jobs import submit_many
from jobs.core import prepared, sql
from jobs.core.sql import now
from jobs.core.states import ENDED, FIRST, MOVES
from jobs.models import Leader, Owner, Run
from jobs.models.access import Access, access_of
from jobs.runs import dispatch
from jobs.runs.admission import admit
from jobs.runs.recording import record
from jobs.system.heartbeat import beat
from jobs.system.rescue import rescue_runs
from tests.waiting import wait_for

T = TypeVar("T")


def submitted(owner: Owner | str, count: int = 1, **options: Any) -> list[Run]:
    """Submit runs that add n and 1; return them in the order of their ids."""
    calls = [{"x": number, "y": 1} for number in range(count)]
    submission = submit_many("tests.add", calls, owner=owner, **options)
    return list(Run.objects.filter(submission=submission).order_by("id"))


def superuser() -> Access:
    """Return the access of a superuser, who sees everything."""
    return access_of(User(is_superuser=True))


def living_worker(hostname: str = "w1@here", *, queues: Sequence[str] = ("jobs",)) -> UUID:
    """Return the id of a worker that has just beaten."""
    node = Node(uuid4(), hostname, 1, "prefork", 4, queues)
    beat(node, [])
    return node.id


def silence(worker: UUID, *, seconds: float) -> None:
    """Let a worker's last heartbeat, and Redis's last answer to it, be that long before."""
    sql.query(
        "UPDATE jobs_worker SET heartbeat_at = heartbeat_at - make_interval(secs => %(ago)s), "
        "redis_answered_at = redis_answered_at - make_interval(secs => %(ago)s) WHERE id = %(id)s",
        {"ago": seconds, "id": worker},
    )


def cut_off(worker: UUID) -> None:
    """Let a worker's last heartbeat report that Redis has not answered it for 31 s."""
    sql.query(
        "UPDATE jobs_worker SET redis_answered_at = heartbeat_at - interval '31 s' WHERE id = %s",
        [worker],
    )


def keep_beating() -> None:
    """Let a beat lead, and its pulse be on time, for an hour."""
    until = now() + timedelta(hours=1)
    Leader.objects.update_or_create(name="beat", defaults={"holder": "b1", "until": until})
    sql.query("UPDATE jobs_cursor SET beat_at = %s", [until])


def ask(worker: UUID, runs: Iterable[Run]) -> list[Admission | Refusal]:
    """Have a worker ask for runs; return the answers in their order."""
    asked = list(runs)
    answers = admit(worker, [AdmissionRequest(str(run.id), run.task) for run in asked])
    return [answers[str(run.id)] for run in asked]


def admitted(worker: UUID, run: Run) -> Admission:
    """Return the admission of a run that nothing keeps from starting."""
    [answer] = ask(worker, [run])
    assert isinstance(answer, Admission), answer
    return answer


def told(admission: Admission, kind: Kind, **facts: Any) -> Report:
    """Return what a worker says of an admitted run."""
    return Report(admission.run_id, admission.token, kind, time.monotonic(), **facts)


def recorded(admission: Admission, kind: Kind, **facts: Any) -> str | None:
    """Record one report; return the run's state, or None when the report was fenced off."""
    return record([told(admission, kind, **facts)]).get(admission.run_id)


def begun(owner: Owner, **options: Any) -> tuple[Run, Admission]:
    """Return a run that a worker has started, as its row is, and its admission."""
    [run] = submitted(owner, **options)
    at = admitted(living_worker(), run)
    assert recorded(at, Kind.STARTED) == "running"
    run.refresh_from_db()
    return run, at


def finish(runs: Iterable[Run], kind: Kind = Kind.SUCCEEDED) -> None:
    """Let a worker take these runs, and report of all of them that they have ended so."""
    worker = living_worker()
    record([told(admitted(worker, run), kind) for run in runs])


def failed(
    owner: Owner, error: str = "builtins.ValueError", message: str = "no", **options: Any
) -> Run:
    """Return a run that failed in its only attempt; `traceback` is an option, too."""
    texts = {"error_message": message, "traceback": options.pop("traceback", "")}
    run, admission = begun(owner, max_attempts=1, **options)
    recorded(admission, Kind.FAILED, error_type=error, **texts)
    run.refresh_from_db()
    return run


def taken_over(run: Run) -> Admission:
    """Let a run's worker be lost, and return the admission of another one that has the run."""
    run.refresh_from_db()
    silence(run.worker_id, seconds=3_600)  # type: ignore[arg-type]
    rescue_runs()
    Run.objects.filter(id=run.id).update(state="queued")
    return admitted(living_worker("w2@here"), run)


def progressed(
    admission: Admission, done: float, total: float | None = None, note: str = ""
) -> None:
    """Write the progress of an attempt, as its task would by a connection of its own."""
    facts = {"id": admission.run_id, "token": admission.token}
    statement = sql.statement("catalog/write_progress")
    assert sql.query(statement, {**facts, "done": done, "total": total, "note": note})


def states(run: Run) -> list[str]:
    """Return the states that a run has gone through, and hold it to the table of moves."""
    run.refresh_from_db()
    moves = run.moves
    assert moves[0][0] in FIRST
    assert moves[-1][0] == run.state
    for (before, earlier, _), (after, later, _) in pairwise(moves):
        assert after in MOVES[before], f"{before} to {after}"
        assert earlier <= later
    assert (run.ended_at is not None) == (run.state in ENDED)
    return [state.value for state, _, _ in moves]


def messages(queue: str = "jobs") -> list[dict[str, Any]]:
    """Return the messages of a queue as Redis holds them, in the order of their delivery.

    Of a fair queue those that are ready, owner after owner.
    """
    with current_app.connection_for_write() as connected:
        channel = connected.default_channel
        client = channel.client
        if queue in channel.fair_queues:
            lists = sorted(client.scan_iter(queue_key(queue, "ready", "*")), key=_by_number)
            ids = [known for each in lists for known in client.zrange(each, 0, -1)]
            return [parsed(client.hget(queue_key(queue, "body"), known)) for known in ids]
        keys = [channel._q_for_pri(queue, priority) for priority in channel.priority_steps]
        # Pushed at the left, taken from the right.
        return [json.loads(text) for key in keys for text in client.lrange(key, 0, -1)[::-1]]


def hinted(queue: str = "jobs") -> list[UUID]:
    """Return the ids of the runs that a queue holds hints of, in the order of their delivery."""
    return [UUID(message["headers"]["id"]) for message in messages(queue)]


def _by_number(line: bytes) -> tuple[bytes, int, bytes]:
    """Return what puts an owner's submissions, whose names are numbers, in their order."""
    owner, _, submission = line.partition(b"|")
    return owner, len(submission), submission


def known(queue: str = "jobs") -> list[str]:
    """Return the ids of all messages that a fair queue knows: those that a worker holds, too."""
    with current_app.connection_for_write() as connected:
        client = connected.default_channel.client
        return sorted(known.decode() for known in client.hkeys(queue_key(queue, "meta")))


def lose_hints(queue: str = "jobs") -> None:
    """Lose every message that waits in a queue, and nothing else that the broker knows."""
    with current_app.connection_for_write() as connected:
        connected.default_channel.queue_purge(queue)


def hang(client: redis.Redis, settings: Settings) -> None:
    """Let Redis hang for 0.5 s, and a publish wait for 0.2 s at most."""
    settings.FAIRSHIFT = {"PUBLISH_TIMEOUT_SECONDS": 0.2}
    dispatch.broker.cache_clear()
    client.client_pause(500)


def called() -> list[tuple[str, Any]]:
    """Return the plain calls that wait in the broker, such as callbacks: task and arguments."""
    plain = [message for message in messages() if not is_hint(message["headers"])]
    return [
        (message["headers"]["task"], json.loads(base64.b64decode(message["body"]))[0])
        for message in plain
    ]


def age(run: Run, column: str, *, seconds: float) -> None:
    """Put one of a run's times that long before now."""
    sql.query(
        f"UPDATE jobs_run SET {column} = clock_timestamp() - make_interval(secs => %s) "
        "WHERE id = %s",
        [seconds, run.id],
    )
    run.refresh_from_db()


@contextmanager
def held_by_somebody(run: Run) -> Iterator[None]:
    """Have another connection hold a run's row."""
    with row_held("jobs_run", run.id):
        yield


@contextmanager
def row_held(table: str, key: Any) -> Iterator[None]:
    """Have another connection hold a row of a table."""
    with open_transaction(f"SELECT FROM {table} WHERE id = %s FOR UPDATE", key):
        yield


@contextmanager
def open_transaction(statement: str, *parameters: Any) -> Iterator[None]:
    """Have another connection run a statement in a transaction that ends with the block."""
    somebody = connection.copy()
    try:
        somebody.set_autocommit(False)
        somebody.cursor().execute(statement, parameters)
        yield
    finally:
        # Closing alone would release the row at some later moment.
        somebody.rollback()
        somebody.close()


@contextmanager
def without_triggers() -> Iterator[None]:
    """Write past the tables' own triggers, which know only what is now."""
    sql.query("SET LOCAL session_replication_role = replica")
    yield
    sql.query("SET LOCAL session_replication_role = origin")


@contextmanager
def changed_before_its_lock(run: Run, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have somebody change a run's row when a worker's statement has begun, and has no lock yet."""
    text_of = prepared._statement

    def waiting(name: str, partition: str | None = None) -> str:
        text, found = re.subn(
            r"ORDER BY id\) AS (h|p)\b", r", pg_sleep(0.5) \g<0>", text_of(name, partition)
        )
        assert found == (name in ("runs/admit", "runs/admit_plain", "runs/record"))
        return text

    def change() -> None:
        query = "SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
        wait_for(lambda: bool(sql.query(query)))
        Run.objects.filter(id=run.id).update(labels={"changed": "meanwhile"})
        connection.close()

    monkeypatch.setattr(prepared, "_statement", waiting)
    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        monkeypatch.setattr(prepared, "_statement", text_of)


def at_once(*acts: Callable[[], T]) -> list[T | Exception]:
    """Run acts at the same time, each in a thread with a connection of its own."""
    gate = threading.Barrier(len(acts))
    outcomes: list[Any] = [None] * len(acts)

    def perform(index: int, act: Callable[[], T]) -> None:
        try:
            connection.ensure_connection()
            gate.wait(100)
            outcomes[index] = act()
        except Exception as error:
            outcomes[index] = error
        finally:
            connection.close()

    threads = [
        threading.Thread(target=perform, args=(index, act)) for index, act in enumerate(acts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive(), "an act did not come to its end"
    return outcomes


@contextmanager
def behind(act: Callable[[], T]) -> Iterator[tuple[Callable[[], None], list[T | Exception]]]:
    """Run a block in a transaction, and an act that has to wait for one of its locks.

    Yields a call that starts the act and returns once it waits, and the list in which its
    outcome is found after the block.
    """
    outcomes: list[Any] = []
    thread = threading.Thread(target=lambda: outcomes.extend(at_once(act)))

    def begin() -> None:
        thread.start()
        wait_for(is_somebody_blocked, what="the act waits for a lock")

    try:
        with transaction.atomic():
            yield begin, outcomes
    finally:
        if thread.ident:
            thread.join(300)
    assert not thread.is_alive(), "the act still waits"


def is_somebody_blocked() -> bool:
    """Say whether some connection waits for a lock."""
    # Not pg_stat_activity, which stands still inside a transaction.
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        return bool(cursor.fetchone()[0])
