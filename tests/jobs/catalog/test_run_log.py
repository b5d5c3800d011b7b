"""jobs/catalog/run_log: what a task logs and prints is kept with its attempt."""

import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from celery import current_task
from celery.utils.log import get_task_logger
from django.db import OperationalError
from pytest_django import Settings

from fleet import Admission, Kind, LogChunk
from jobs import Secret, job, submit
from jobs.catalog.attempt_store import AttemptStore
from jobs.catalog.redaction import SHOWN, log_redactor
from jobs.catalog.run_log.attempt import AttemptLog
from jobs.catalog.run_log.buffer import LineBuffer
from jobs.catalog.run_log.lines import LINE_BYTES, Line, decoded, encoded, fitted
from jobs.core import sql
from jobs.models import Owner, Run
from jobs.runs.reads.log import Wanted, last_lines, page_of
from jobs.system.reencryption import keys_in_use, reencrypt
from jobs.system.retention.reads import find_run
from tests.jobs.keys import KEY_1, KEY_2, use_ring
from tests.jobs.run_logs import lines_of
from tests.jobs.scenes import admitted, living_worker, recorded, submitted, taken_over
from tests.waiting import stays_false, wait_for

Logs = Callable[..., AttemptLog]
logger = logging.getLogger("shop.orders")


# --- pure ----------------------------------------------------------------------------------
def test_any_text_is_stored_as_utf8_that_postgresql_and_json_take() -> None:
    """NUL, lone surrogates and binary are spelt out; a long line is cut in its middle."""
    assert fitted("a\x00b\udc80c", str) == "a\\x00b\\udc80c"
    cut = fitted("α" * 10_000_000, str)
    assert len(cut.encode()) <= LINE_BYTES and "bytes left out" in cut
    lines = [Line(1.5, 20, "a", fitted(str(bytes(range(256))), str)), Line(2, 99, "", "")]
    assert decoded(encoded(lines * 100)) == lines * 100


def test_of_a_long_log_the_first_and_the_last_lines_stay() -> None:
    """The numbers of lines show the gap; no chunk spans it."""
    buffer = LineBuffer(first_bytes=1_000, last_bytes=2_000)
    for number in range(1, 1_001):
        buffer.add(Line(0, 20, "", f"{number:068}"))
    batches = buffer.take()
    numbers = [n for b in batches for n in range(b.first_line, b.first_line + len(b.lines))]
    assert numbers == [*range(1, 11), *range(981, 1_001)]
    assert [int(line.text) for b in batches for line in b.lines] == numbers
    assert not buffer.take() and buffer.count == 1_000


@job(name="tests.sign_in")
def sign_in(user: str, pin: Secret[str], **more: Any) -> None:
    logger.warning("%s signs in with %s", user, pin)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ann has hunter22", f"ann has {SHOWN}"),
        ("password=abc rest", f"password={SHOWN} rest"),
        ('{"db_password": "a b", "x": 1}', f'{{"db_password": "{SHOWN}", "x": 1}}'),
        ("Authorization: Bearer abc.def", f"Authorization: {SHOWN}"),
        ("API-KEY = 'x y'", f"API-KEY = '{SHOWN}'"),
        ("Tokens used=5, key: none", "Tokens used=5, key: none"),
        ("deep 77777777", f"deep {SHOWN}"),
    ],
)
def test_secrets_are_hidden_before_a_line_is_stored(text: str, shown: str) -> None:
    """Values of hidden arguments anywhere, and what follows a secret name."""
    redacted = log_redactor("tests.sign_in", ("ann", "hunter22"), {"a": {"token": [77777777]}})
    assert redacted(text) == shown


# --- written -------------------------------------------------------------------------------
@pytest.fixture
def logs(settings: Settings) -> Logs:
    """Make the log of an admission, as in the process of its task."""

    def made(at: Admission, **sizes: int) -> AttemptLog:
        settings.FAIRSHIFT = {**settings.FAIRSHIFT, **sizes}
        run_id = UUID(at.run_id)
        return AttemptLog(owner="acme", run_id=run_id, token=at.token, redactor=lambda: str)

    return made


def say(log: AttemptLog, text: str) -> None:
    log.add(logging.INFO, "shop", text, 1.0)


def begin(owner: Owner, logs: Logs, **sizes: int) -> tuple[Run, Admission, AttemptLog]:
    """Return a run that a worker has, its admission, and the log of its attempt."""
    [run] = submitted(owner)
    at = admitted(living_worker(), run)
    return run, at, logs(at, **sizes)


def texts(run: Run, **wanted: Any) -> list[str]:
    run.refresh_from_db()
    return [line.text for line in lines_of(run, wanted=Wanted(**wanted))]


def end(log: AttemptLog, at: Admission) -> None:
    recorded(at, Kind.SUCCEEDED, log=log.end())


@pytest.mark.usefixtures("committed")
class TestWritten:
    def test_a_short_log_comes_with_the_outcome(self, acme: Owner, logs: Logs) -> None:
        """In the worker's own statement: its task opens no connection."""
        run, at, log = begin(acme, logs)
        for number in range(3):
            say(log, f"line {number}")
        log.print(20, "stdout", "no break")
        assert texts(run) == []
        end(log, at)
        assert texts(run) == ["line 0", "line 1", "line 2", "no break"]
        assert [line.number for line in lines_of(run)] == [1, 2, 3, 4]
        assert [line.text for line in last_lines(run, most=2).lines] == ["line 2", "no break"]

    def test_lines_are_visible_while_the_task_runs(self, acme: Owner, logs: Logs) -> None:
        """Without another line, and whatever transaction the task has open."""
        run, at, log = begin(acme, logs)
        say(log, "first")
        wait_for(lambda: texts(run) == ["first"])
        say(log, "second")
        page = page_of(run, most=10)
        wait_for(
            lambda: [x.text for x in page_of(run, after=page.after, most=9).lines] == ["second"]
        )
        say(log, "third")
        end(log, at)
        assert texts(run) == ["first", "second", "third"]

    @pytest.mark.parametrize("is_due", [True, False])
    def test_a_stale_attempt_writes_nothing(self, acme: Owner, logs: Logs, is_due: bool) -> None:
        """Neither by itself nor with its report: another attempt has the run."""
        run, at, log = begin(acme, logs)
        say(log, "of the lost one")
        wait_for(lambda: texts(run) == ["of the lost one"])
        newer = taken_over(run)
        say(log, "too late")
        if is_due:
            assert stays_false(lambda: "too late" in texts(run), seconds=1)
        end(log, at)
        fresh = logs(newer)
        say(fresh, "of the newer")
        end(fresh, newer)
        assert texts(run) == ["of the lost one", "of the newer"]
        assert texts(run, attempt=2) == ["of the newer"]

    def test_the_gap_of_a_long_log_is_named(self, acme: Owner, logs: Logs) -> None:
        """Chunks that were written make room for later ones."""
        sizes = {"RUN_LOG_FIRST_BYTES": 1_000, "RUN_LOG_LAST_BYTES": 3_000}
        run, at, log = begin(acme, logs, **sizes)
        for batch in range(5):
            for number in range(20):
                say(log, f"{batch * 20 + number + 1:068}")
            # The newest line that is to stay is written before the next batch.
            wait_for(lambda: texts(run)[-1:] == [f"{(batch + 1) * 20:068}"])  # noqa: B023
        # The end brings the last ones, before they are due.
        for number in range(101, 131):
            say(log, f"{number:068}")
        end(log, at)
        lines = list(lines_of(run))
        numbers = [line.number for line in lines]
        assert [int(line.text) for line in lines] == numbers == [*range(1, 11), *range(101, 131)]
        assert sum(line.left_out for line in lines) == 90

    def test_lines_wait_for_postgresql(
        self, acme: Owner, logs: Logs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And the task does not. What cannot be written until the end comes with the outcome."""
        run, at, log = begin(acme, logs)
        tried = threading.Event()

        def away(*_: Any) -> bool:
            tried.set()
            raise OperationalError("away")

        monkeypatch.setattr(AttemptStore, "write_log", away)
        say(log, "first")
        assert tried.wait(10)
        say(log, "second")
        end(log, at)
        assert texts(run) == ["first", "second"]

    def test_a_large_rest_is_cut_with_a_named_gap(
        self, acme: Owner, logs: Logs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An outcome does not wait for a log, nor is it larger than a little."""
        run, at, log = begin(acme, logs)
        monkeypatch.setattr(AttemptStore, "write_log", _raise_away)
        for number in range(300):
            say(log, f"{number} {os.urandom(2_000).hex()}")
        rest = log.end()
        assert 0 < sum(len(chunk.data) for chunk in rest) <= 160_000
        recorded(at, Kind.SUCCEEDED, log=rest)
        run.refresh_from_db()
        assert run.state == "succeeded"

    def test_an_outcome_does_not_depend_on_its_log(self, acme: Owner) -> None:
        """A chunk that PostgreSQL refuses is lost, and the run ends as its task did."""
        [run] = submitted(acme)
        at = admitted(living_worker(), run)
        spoilt = LogChunk(2**40, 1, float("nan"), 0, b"")
        assert recorded(at, Kind.SUCCEEDED, log=[spoilt]) == "succeeded"

    def test_chunks_are_encrypted_and_bound_to_their_place(
        self, acme: Owner, logs: Logs, settings: Settings
    ) -> None:
        """With the key of errors; moved bytes are not opened, and a new key takes them over."""
        use_ring(settings, KEY_1)
        run, at, log = begin(acme, logs)
        say(log, "canary")
        end(log, at)
        [row] = sql.query("SELECT data, key FROM jobs_log")
        assert b"canary" not in bytes(row["data"]) and row["key"] == 1
        assert texts(run) == ["canary"]
        use_ring(settings, KEY_1, KEY_2)
        reencrypt(2)
        assert {"part": "logs", "key": 2, "count": 1} in keys_in_use()
        use_ring(settings, KEY_2)
        assert texts(run) == ["canary"]
        found = find_run(run.id)
        assert found and [line["text"] for line in found["log"]] == ["canary"]
        sql.query("UPDATE jobs_log SET first_line = 5")
        assert "cannot be read" in texts(run)[0]


def _raise_away(*_: Any) -> bool:
    raise OperationalError("away")


# --- seen ----------------------------------------------------------------------------------
@job(name="tests.say", max_attempts=1)
def say_much(how: str) -> str:
    """Log and print in one way."""
    if how == "loggers":
        logger.info("of %s", "logging")
        get_task_logger("tests.say").warning("of celery")
        logger.debug("below")
        print("printed", 1, end="")
        print(" and", "more\ntwice")
        sys.stderr.write("to stderr\n")
    elif how == "thread":
        thread = threading.Thread(target=lambda: logger.warning("of a thread"))
        thread.start()
        thread.join()
    elif how == "fork":
        logger.warning("of the parent")
        if (pid := os.fork()) == 0:
            logger.warning("of the copy")
            os._exit(0)
        os.waitpid(pid, 0)
    elif how == "error":
        try:
            raise ValueError("boom")
        except ValueError:
            logger.exception("caught")
    elif how == "bad":
        logger.warning("%d", "no number")
        logger.warning({"event": "sold", "count": 3})
        raise KeyError(current_task.name)
    return how


@pytest.fixture
def ran(fairshift: Any, acme: Owner) -> Callable[..., list[Any]]:
    """Run the task once in this process; return the lines of its run."""

    def once(how: str, **options: Any) -> list[Any]:
        run = fairshift.run(submit("tests.say", arguments={"how": how}, owner=acme, **options))
        return list(lines_of(run))

    return once


def test_any_logger_and_print_is_seen(ran: Any, caplog: pytest.LogCaptureFixture) -> None:
    """With level and logger; a logger with handlers of its own, too."""
    caplog.set_level(logging.DEBUG)
    assert [(line.level_name, line.logger, line.text) for line in ran("loggers")] == [
        ("INFO", "shop.orders", "of logging"),
        ("WARNING", "tests.say", "of celery"),
        ("INFO", "stdout", "printed 1 and more"),
        ("INFO", "stdout", "twice"),
        ("WARNING", "stderr", "to stderr"),
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("how", "line"), [("thread", "of a thread"), ("fork", "of the parent")])
def test_a_thread_of_the_task_is_seen_and_a_forked_copy_is_not(
    ran: Any, how: str, line: str
) -> None:
    """The copy ends with the task's process, which has the log."""
    assert [found.text for found in ran(how)] == [line]


def test_an_error_is_logged_with_its_traceback(ran: Any) -> None:
    [line] = ran("error")
    assert line.text.startswith("caught\nTraceback") and "ValueError: boom" in line.text


def test_what_cannot_be_formatted_is_kept_as_it_is(
    ran: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the lines of a failed attempt stay."""
    monkeypatch.setattr(logging, "raiseExceptions", False)
    assert [line.text for line in ran("bad")] == ["'%d' ('no number',)", "sold count=3"]


def test_a_level_is_of_the_submit_the_task_or_the_installation(
    ran: Any, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """The nearest one counts; OFF keeps nothing."""
    caplog.set_level(logging.DEBUG)
    assert len(ran("loggers", log_level="DEBUG")) == 6
    assert [line.level_name for line in ran("loggers", log_level="WARNING")] == ["WARNING"] * 2
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "RUN_LOG_LEVEL": "OFF"}
    assert ran("loggers") == []
    assert len(ran("loggers", log_level="INFO")) == 5


def test_nothing_is_kept_outside_of_a_task(ran: Any) -> None:
    """What the process logs between two tasks belongs to neither."""
    ran("nothing")
    logger.warning("outside")
    assert not sql.query("SELECT FROM jobs_log")
