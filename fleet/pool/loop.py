"""The loop of a child process: boot, read jobs, run them, write their results."""

from __future__ import annotations

import gc
import os
import pickle
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any, Final, NoReturn

from billiard.common import clear_terminate_handler_fired, reset_signals, terminate_handler_fired
from billiard.compat import mem_rss
from billiard.einfo import ExceptionInfo
from billiard.pool import EX_FAILURE, EX_OK, EX_RECYCLE, MaybeEncodingError
from billiard.reduction import ForkingPickler
from celery.utils.log import get_logger

from fleet import log_events
from fleet.pool import soft_stop, stacks
from fleet.pool.copies import end_copy_of
from fleet.pool.job_socket import IN_FILE, JobSocket, text_of
from fleet.pool.results import BOOTED, Answer, Results
from fleet.pool.row import Row

logger = get_logger("celery.pool")

COLLECT_AT: Final = gc.get_threshold()
"""The thresholds before the worker set its own: the children run the user's code."""


@dataclass(frozen=True)
class Loop:
    """The target of a child's process; made in the main process, before the fork."""

    row: Row
    stack_file: IO[bytes] | None
    jobs: JobSocket
    results: Results
    initializer: Callable[..., Any]
    initargs: tuple[Any, ...]
    on_exit: Callable[[int, int], Any]
    most_jobs: int | None
    most_kilobytes: int | None

    def __call__(self) -> NoReturn:
        pid, status = os.getpid(), EX_FAILURE
        try:
            self._boot(pid)
            status = self._work(pid)
        except SystemExit as leaving:
            status = leaving.code if isinstance(leaving.code, int) else EX_FAILURE
        except BaseException:
            log_events.CHILD_BROKEN.log(logger, pid=pid, exc_info=True)
        finally:
            try:
                end_copy_of(pid)
                self.on_exit(pid, status)
            finally:
                os._exit(status)

    def _boot(self, pid: int) -> None:
        clear_terminate_handler_fired()
        self.jobs.leave_to_main()
        self.results.leave_to_main()
        self.initializer(*self.initargs)
        reset_signals()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.set_threshold(*COLLECT_AT)
        stacks.install(self.stack_file)
        soft_stop.install(lambda: self.row.is_asked_to_stop)
        self.row.boot()
        self.results.write(Answer(pid, BOOTED, 0.0, b""))

    def _work(self, pid: int) -> int:
        done_count = 0
        while self.most_jobs is None or done_count < self.most_jobs:
            # A copy that a task has forked must neither read a job nor write a result.
            end_copy_of(pid)
            if self.row.retires:
                return EX_OK
            try:
                packet = self.jobs.read()
            except EOFError:
                return EX_OK
            if packet is None:
                continue
            number, text, file = packet
            if not text:
                return EX_OK
            if text == IN_FILE and file is None:
                # This process has no descriptor left: the main one sends the job again.
                self.results.write(Answer(pid, number, 0.0, b""))
                continue
            began_at = self.row.begin(number)
            if file is not None:
                text = text_of(file)
            result, leaving = _result_of(text)
            self.results.write(Answer(pid, number, began_at, result))
            if leaving is not None:
                raise leaving
            done_count += 1
            if self.most_kilobytes and (used := mem_rss()) > self.most_kilobytes:
                log_events.CHILD_TOO_LARGE.log(
                    logger, pid=os.getpid(), used=used, most=self.most_kilobytes
                )
                return EX_RECYCLE
        return EX_RECYCLE


def _result_of(text: bytes) -> tuple[bytes, BaseException | None]:
    """Run a job; return its pickled result, and the error with which it ends its process."""
    leaving: BaseException | None = None
    try:
        function, args, kwargs = pickle.loads(text)  # noqa: S301  from our main process
        soft_stop.allow(anywhere=not hasattr(function, "stops_in_body"))
        result = True, function(*args, **kwargs)
        soft_stop.allow(anywhere=False)
    except BaseException as error:
        soft_stop.allow(anywhere=False)
        if terminate_handler_fired():
            # This process is told to end: the main one decides what becomes of the job.
            raise
        result = False, ExceptionInfo()
        leaving = error if isinstance(error, SystemExit | KeyboardInterrupt) else None
    try:
        return _pickled(result), leaving
    except Exception as error:
        wrapped = MaybeEncodingError(error, result[1])
        einfo = ExceptionInfo((MaybeEncodingError, wrapped, error.__traceback__))
        return _pickled((False, einfo)), leaving


def _pickled(result: Any) -> bytes:
    try:
        return pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    except Exception:
        # It knows more types, or raises a better error.
        return bytes(ForkingPickler.dumps(result))
