"""Looking: the worker is asked where a run is, and answers with the stack of its process.

The question comes with the answer to a heartbeat, so that Redis is neither needed nor trusted.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from fleet import log_events
from fleet.contract import Application, Asked, Look, Unseen
from fleet.pool import Job, stacks_of
from fleet.worker.admitted import AdmittedRun

logger = logging.getLogger(__name__)

STATES: Final = {"T": "stopped", "t": "traced", "D": "in an uninterruptible call", "Z": "ended"}
"""States of a process in which it writes no stack, by their letters in /proc."""
NOTICED_SECONDS: Final = 0.5
"""The most that the pool needs to notice a start."""


class Looking:
    """Answers in a thread of its own, as a child has seconds to write its stack."""

    def __init__(self, application: Application, held: Callable[[str], AdmittedRun | None]) -> None:
        self._application = application
        self._held = held
        self._thread: threading.Thread | None = None

    def follow(self, asked: Sequence[Asked]) -> None:
        """Answer; what is asked meanwhile is asked again with the next heartbeat."""
        if asked and (self._thread is None or not self._thread.is_alive()):
            arguments = {"target": self._answer, "args": (asked,), "daemon": True}
            self._thread = threading.Thread(name="fairshift-look", **arguments)  # type: ignore[arg-type]
            self._thread.start()

    def _answer(self, asked: Sequence[Asked]) -> None:
        try:
            for each in asked:
                if (found := self._look(each)) is not None:
                    self._application.note_look(found)
        except Exception:
            # It is asked again.
            log_events.CALLBACK_FAILED.log(logger, exc_info=True)
        finally:
            with suppress(Exception):
                self._application.close()

    def _look(self, asked: Asked) -> Look | None:
        """Return where a run is; None if its attempt ends, which says more."""
        held = self._held(asked.run_id)
        if held is None or held.admission.token != asked.token:
            return None
        found = Look(*asked)
        job = held.job
        until = time.monotonic() + NOTICED_SECONDS
        while isinstance(job, Job) and job.child is None and time.monotonic() < until:
            time.sleep(NOTICED_SECONDS / 50)  # its start may not be noticed yet
        child = job.child if isinstance(job, Job) and job.is_running else None
        if child is None:
            is_other = held.started_at is not None and not isinstance(job, Job)
            unseen = Unseen.OTHER_POOL if is_other else Unseen.NOT_BEGUN
            return None if held.settled else found._replace(unseen=unseen)
        pid = child.pid
        stack, (memory, seconds, state) = stacks_of(child), process_facts(pid)
        if held.settled or not job.is_running:
            # The stack may be that of the next job.
            return None
        found = found._replace(pid=pid, stack=stack, memory_bytes=memory, cpu_seconds=seconds)
        if stack:
            return found
        return found._replace(unseen=Unseen.SILENT, process_state=STATES.get(state, ""))


def process_facts(pid: int) -> tuple[int | None, float | None, str]:
    """Return a process's memory (bytes), its CPU time (seconds) and the letter of its state.

    None and "" where the system does not say.
    """
    try:
        # Its name, in parentheses, may have spaces.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks, pages = int(fields[11]) + int(fields[12]), int(fields[21])
        memory = pages * os.sysconf("SC_PAGE_SIZE")
        return memory, ticks / os.sysconf("SC_CLK_TCK"), fields[0]
    except (OSError, ValueError, IndexError):
        return None, None, ""
