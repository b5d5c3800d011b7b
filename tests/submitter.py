"""A process that submits in a loop and keeps the judge's submitters' log: stands for a web process.

Real Django, real transactions. With FAULT set it dies at the named crash point. Each submit
prints its key and the seconds that the caller waited; "open" means that it stands inside an
open transaction and waits for a line of input. After a SIGTERM it submits nothing more.
"""

import argparse
import os
import signal
import time
from collections.abc import Callable, Sequence
from threading import Event
from typing import Any

import django
from django.db import DatabaseError, InterfaceError, close_old_connections, transaction

from fleet import crash_points
from tests.judge.log import SubmitLog

AFTER_ERROR_SECONDS = 0.5
AT_ONCE = 3
OWNERS = ("acme", "globex")


class RolledBack(Exception):
    """The caller changed its mind: everything since the start of its block is undone."""


def main() -> None:
    """Submit, or have one submitter after the other die at the points of `--end-at`."""
    chosen = _options()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    for start in range(0, len(chosen.end_at), AT_ONCE):
        dying = [_fork(chosen, fault) for fault in chosen.end_at[start : start + AT_ONCE]]
        for pid in dying:
            _, status = os.waitpid(pid, 0)
            assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, chosen.end_at
    if not chosen.end_at:
        _submit(chosen)


def _fork(chosen: argparse.Namespace, fault: str) -> int:
    """Start a submitter that dies at this crash point; a fork of a process that is set up."""
    pid = os.fork()
    if not pid:
        try:
            crash_points._armed.update(crash_points.read_faults({"FAULT": fault}))
            chosen.prefix = fault
            _submit(chosen)
        finally:
            os._exit(1)
    return pid


def _submit(chosen: argparse.Namespace) -> None:
    """Submit `--count` times: alone, in a caller's block, in bulk, and rolled back, in turn."""
    log = SubmitLog(chosen.log)
    is_asked_to_end = Event()
    signal.signal(signal.SIGTERM, lambda *_: is_asked_to_end.set())
    for number in range(1, chosen.count + 1):
        if is_asked_to_end.is_set():
            break
        key = f"{chosen.prefix}-{number}"
        is_held = number == chosen.hold_at
        close_old_connections()  # as Django does before each request
        began_at = time.monotonic()
        try:
            if is_held or number % 2 == 0:
                # Every fourth one is rolled back.
                _submit_in_block(log, key, chosen, is_held=is_held, rolls_back=number % 4 == 0)
            else:
                _submit_alone(log, key, chosen)
        except (DatabaseError, InterfaceError) as error:
            # Whether it was committed is not known: the log says no more.
            print("unknown", key, type(error).__name__, flush=True)
            time.sleep(AFTER_ERROR_SECONDS)
        # One write: the submitters of `--end-at` share the output.
        print(f"{key} {time.monotonic() - began_at:.3f}\n", end="", flush=True)
        time.sleep(chosen.pause)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.submitter", description=__doc__)
    parser.add_argument("--log", required=True, help="the submitters' log")
    parser.add_argument("--prefix", default="submit", help="how its keys begin")
    parser.add_argument("--count", type=int, default=20, help="submits to make")
    parser.add_argument("--size", type=int, default=3, help="runs of each bulk submit")
    parser.add_argument("--seconds", type=float, default=0.0, help="that each run takes")
    parser.add_argument("--attempts", type=int, default=9, help="that each run may take")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two submits")
    parser.add_argument("--hold-at", type=int, default=0, help="the submit to stay in, uncommitted")
    parser.add_argument("--end-at", nargs="+", default=(), help="crash points, such as name:1")
    return parser.parse_args()


def _submit_alone(log: SubmitLog, key: str, chosen: argparse.Namespace) -> None:
    """Submit one run in the transaction that submit opens itself."""
    from jobs import submit
    from tests.tasks import record

    log.intend(key)
    run = submit(record, n=1, seconds=chosen.seconds, **_options_of(key, chosen))
    log.ok(key, [run.id])


def _submit_in_block(
    log: SubmitLog, key: str, chosen: argparse.Namespace, *, is_held: bool, rolls_back: bool
) -> None:
    """Submit several runs in a block of the caller."""

    def hold() -> None:
        print("open", flush=True)
        input()

    calls = [{"n": n, "seconds": chosen.seconds} for n in range(chosen.size)]
    submit_in_block(
        *(log, key, "tests.record", calls),
        rolls_back=rolls_back,
        before_end=hold if is_held else None,
        **_options_of(key, chosen),
    )


def submit_in_block(
    log: SubmitLog,
    key: str,
    task: str,
    calls: Sequence[dict[str, Any]],
    *,
    rolls_back: bool,
    before_end: Callable[[], None] | None = None,
    **options: Any,
) -> list[str]:
    """Submit these calls in a block, whose ids are noted before its COMMIT; return the ids.

    Or roll it back at its end. `before_end` is called inside of it.
    """
    from jobs import submit_many
    from jobs.models import Run

    log.intend(key, count=len(calls), prepares=True)
    ids: list[str] = []
    try:
        with transaction.atomic():
            submission = submit_many(task, calls, **options)
            runs = Run.objects.filter(submission=submission).order_by("id")
            ids += map(str, runs.values_list("id", flat=True))
            log.prepared(key, ids)
            if before_end is not None:
                before_end()
            if rolls_back:
                raise RolledBack
    except RolledBack as error:
        log.failed(key, ids=ids, error=type(error).__name__)
    else:
        log.ok(key, ids)
    return ids


def _options_of(key: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the options of a submit under this key: both owners take their turn."""
    owner = OWNERS[int(key.rpartition("-")[2]) // 2 % len(OWNERS)]
    return {"owner": owner, "labels": {"judge_key": key}, "max_attempts": chosen.attempts}


if __name__ == "__main__":
    main()
