"""Handles what children have written."""

from __future__ import annotations

import pickle
from collections import deque

from billiard.einfo import ExceptionInfo

from fleet.pool.children import Children
from fleet.pool.jobs import Jobs
from fleet.pool.outbox import Outbox
from fleet.pool.results import BOOTED, Answer, Results


class Answers:
    """Ends jobs by the results of their children."""

    def __init__(self, results: Results, jobs: Jobs, outbox: Outbox, children: Children) -> None:
        self._results = results
        self._jobs, self._outbox, self._children = jobs, outbox, children

    def take(self) -> None:
        """Handle the answers that are here."""
        self._take(deque(self._results.read()))

    def take_last_of(self, pids: list[int]) -> None:
        """Handle all that children had written which have ended."""
        self._take(deque(self._results.read_all()))
        for pid in pids:
            self._results.forget(pid)

    def _take(self, answers: deque[Answer]) -> None:
        """Handle all answers, even if one of them raises to end this worker."""
        try:
            while answers:
                self._on_answer(answers.popleft())
        finally:
            if answers:
                self._take(answers)

    def _on_answer(self, answer: Answer) -> None:
        job = self._jobs.get(answer.number)
        if answer.number == BOOTED:
            self._children.note_booted()
        elif job is None:
            pass  # it has ended by its time limit, or as lost
        elif not answer.text:
            self._outbox.add_later(job)  # its child had no file descriptor for it
        else:
            if child := self._children.find(answer.pid):
                child.done_count += 1
            self._outbox.note_read(job)
            if job.child is None:
                job.accept(answer.pid, answer.began_at)
            try:
                is_value, value = pickle.loads(answer.text)  # noqa: S301  from our own children
            except Exception:
                is_value, value = False, ExceptionInfo()
            self._jobs.end(job, is_value=is_value, answer=value)
