"""jobs/runs/looks.py: a question is asked once, and its answer is that attempt's."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from fleet import Asked, Kind, Look, Node, Unseen
from jobs.core.errors import StateConflict
from jobs.core.states import ACTIVE, State
from jobs.models import AuditEntry, Owner, Run, Worker
from jobs.runs.looks import KEPT, STACK_LIMIT, answers_of, ask_where, note_look, unanswered
from jobs.system.heartbeat import beat
from jobs.system.promotion import promote
from jobs.system.reencryption import reencrypt
from tests.jobs.keys import KEY_1, KEY_2, use_ring
from tests.jobs.scenes import admitted, at_once, begun, living_worker, recorded, silence, submitted

STACK = "Current thread 0x01 (most recent call first):\n  File one.py, line 7 in poll"


def asked_of(run: Run) -> list[Asked]:
    """Return what the run's worker is asked with its next heartbeat."""
    worker = Worker.objects.get(id=run.worker_id)
    node = Node(worker.id, worker.hostname, 1, "prefork", 4, ["jobs"])
    return list(beat(node, [str(run.id)]).look)


def note(run: Run, **facts: Any) -> None:
    note_look(Look(str(run.id), **{"token": run.token, "pid": 7, "stack": STACK, **facts}))
    run.refresh_from_db()


def test_a_question_reaches_the_worker_until_it_is_answered(acme: Owner) -> None:
    """With its heartbeats; the answer stays, with who asked."""
    run, _ = begun(acme)
    assert asked_of(run) == []
    ask_where(run, actor=User.objects.create(username="ada"), reason="it hangs")
    assert asked_of(run) == asked_of(run) == [Asked(str(run.id), 1)]
    assert "w1@here" in unanswered(run)
    note(run, memory_bytes=5, cpu_seconds=0.5)
    assert asked_of(run) == [] and unanswered(run) == ""
    [answer] = answers_of(run)
    assert (answer.stack, answer.problem, answer.worker) == (STACK, "", "w1@here")
    assert (answer.asked_by, answer.memory_bytes, answer.cpu_seconds) == ("ada", 5, 0.5)
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.reason, entry.object_id) == ("look into", "it hangs", str(run.id))


def test_two_questions_at_once_are_one(committed: None, acme: Owner) -> None:
    """And a third, within a second of them, is not asked either."""
    run, _ = begun(acme)
    at_once(lambda: ask_where(run), lambda: ask_where(run))
    run.refresh_from_db()
    first = run.look
    note(run)
    ask_where(run)
    assert run.look == {**(first or {}), "answered": True}
    Run.objects.filter(id=run.id).update(look={**run.look, "at": run.look["at"] - 2})
    ask_where(run)
    assert "answered" not in (run.look or {})


def test_an_answer_of_an_earlier_attempt_is_dropped(acme: Owner) -> None:
    """Its token is fenced, and its question is not that of the next attempt."""
    run, at = begun(acme)
    ask_where(run)
    recorded(at, Kind.RETRYING, error_type="OSError", delay=0.0)
    note(run, token=1)
    assert run.looks is None and unanswered(run) == ""
    promote()
    admitted(living_worker("w2@here"), run)
    run.refresh_from_db()
    assert asked_of(run) == []
    note(run, token=1)
    note(run, token=2)
    assert run.looks is None


def test_an_answer_that_nobody_asked_for_is_dropped(acme: Owner) -> None:
    """A second one, too."""
    run, _ = begun(acme)
    note(run)
    assert run.looks is None
    ask_where(run)
    note(run)
    note(run, stack="again")
    assert [answer.stack for answer in answers_of(run)] == [STACK]


def test_the_newest_answers_stay_and_are_cut(acme: Owner) -> None:
    """So a run that is asked about each second stays small."""
    run, _ = begun(acme)
    for number in range(KEPT + 2):
        Run.objects.filter(id=run.id).update(look=None)
        ask_where(run)
        note(run, stack=f"{number}\x00" + "x" * STACK_LIMIT)
    answers = answers_of(run)
    assert [answer.stack[0] for answer in answers] == ["2", "3", "4", "5", "6"]
    assert {len(answer.stack) for answer in answers} == {STACK_LIMIT}


@pytest.mark.parametrize("unseen", Unseen)
def test_why_there_is_no_stack_is_a_sentence(acme: Owner, unseen: Unseen) -> None:
    """For each reason that a worker has."""
    run, _ = begun(acme)
    ask_where(run)
    note(run, stack="", unseen=unseen, process_state="stopped")
    [answer] = answers_of(run)
    assert answer.problem.endswith(".") and not answer.stack


def test_a_worker_that_does_not_answer_is_named(acme: Owner) -> None:
    """With the age of its last heartbeat."""
    run, _ = begun(acme)
    ask_where(run)
    Run.objects.filter(id=run.id).update(look={**(run.look or {}), "at": run.look["at"] - 90})  # type: ignore[index]
    silence(run.worker_id, seconds=100)  # type: ignore[arg-type]
    run = Run.objects.get()
    assert unanswered(run).startswith("w1@here has not answered for 90 s")


def test_answers_are_encrypted_as_errors_are(acme: Owner, settings: Settings) -> None:
    """And under another key after a rotation."""
    use_ring(settings, KEY_1)
    run, _ = begun(acme)
    ask_where(run)
    note(run)
    assert run.looks_key == 1 and b"one.py" not in bytes(run.looks or b"")
    use_ring(settings, KEY_1, KEY_2)
    reencrypt(2)
    run.refresh_from_db()
    assert run.looks_key == 2 and [answer.stack for answer in answers_of(run)] == [STACK]


@pytest.mark.parametrize("state", sorted(set(State) - ACTIVE))
def test_a_run_that_no_worker_has_is_a_conflict(acme: Owner, state: State) -> None:
    """Nothing is asked, and nothing is in the audit."""
    [run] = submitted(acme)
    Run.objects.filter(id=run.id).update(state=state)
    with pytest.raises(StateConflict, match=f"is {state} and cannot be looked into"):
        ask_where(run)
    assert not AuditEntry.objects.exists()
