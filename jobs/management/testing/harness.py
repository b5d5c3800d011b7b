"""What a test does with Fairshift: look at submits, run them, move the clock, freeze windows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from django.db import transaction

from fleet import Hint
from jobs.catalog.registry import resolve
from jobs.catalog.typed import AnyTask
from jobs.core.errors import StateConflict
from jobs.core.states import State
from jobs.management.testing.clock import TestWorld
from jobs.management.testing.worker import InProcessWorker, NoBroker
from jobs.models import Job, Owner, Run
from jobs.recurring import trigger
from jobs.recurring.pulse import make_ticks
from jobs.recurring.tick import run_tick
from jobs.runs import dispatch
from jobs.system import promotion

MOST: Final = 10_000
"""Most attempts of one `drain`: a task that always submits itself again would never end."""


class Fairshift:
    """The fixture `fairshift`. Submits are captured, until the test runs them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._before = set(Run.objects.values_list("id", flat=True))
        self._world = TestWorld(monkeypatch)
        self._worker = InProcessWorker()
        self._broker = NoBroker()
        for module in (dispatch, trigger):
            monkeypatch.setattr(module, "broker", lambda: self._broker)

    # --- what was submitted ---------------------------------------------------------------

    def submitted(
        self,
        task: AnyTask | None = None,
        *,
        owner: Owner | str | None = None,
    ) -> list[Run]:
        """Return the runs that the test has made, oldest first; of one task and owner if given.

        Raises UnknownTask for a task that does not exist, as a submit does.
        """
        found = (
            Run.objects.exclude(id__in=self._before)
            .order_by("created_at", "id")
            .select_related("owner")
        )
        if task is not None:
            found = found.filter(task=resolve(task).name)
        if owner is not None:
            slug = owner.slug if isinstance(owner, Owner) else owner
            found = found.filter(owner__slug=slug)
        return list(found)

    # --- running --------------------------------------------------------------------------

    def inline(self) -> None:
        """Run each submit of the test at once, in this process, from now on.

        Also before the commit of the test's transaction. The outcome is on the row: call
        `run.refresh_from_db()`. A failed attempt waits for its retry, as always.
        """
        self._broker.worker = self._worker
        self._monkeypatch.setattr(dispatch, "transaction", _AtOnce())
        # Not with the hints that the same transaction has published before.
        self._monkeypatch.setattr(dispatch, "publish_hint_on_commit", _publish_at_once)

    def run(self, run: Run) -> Run:
        """Run one attempt of a queued run; return it as it is then.

        Raises StateConflict if it may not start now: its `why_waiting` says why.
        """
        run.refresh_from_db()
        refusal = self._worker.run(run)
        run.refresh_from_db()
        if refusal is not None:
            why = f"{run.state} ({run.why_waiting() or refusal})"
            raise StateConflict(str(run.id), why, "started now")
        return run

    def drain(self) -> int:
        """Run all that is due now, and what it submits; return how many attempts that took.

        The highest priority first, then in the order of submits. Windows, pauses, locks, caps and
        deadlines hold as on a worker; a run that may not start stays as it is. Due jobs are
        triggered first.
        """
        total = 0
        if Job.objects.filter(enabled=True).exists():
            for tick in make_ticks():
                run_tick(tick)
        refused: set[Any] = set()
        while True:
            promotion.expire()
            promotion.promote()
            queued = Run.objects.filter(state=State.QUEUED).exclude(id__in=refused)
            found = queued.order_by("-priority", "created_at", "id").first()
            if found is None:
                return total
            if self._worker.run(found) is not None:
                refused.add(found.id)
                continue
            # It may have freed a lock or a cap for those before it.
            refused.clear()
            total += 1
            if total >= MOST:
                raise RuntimeError(f"drain: {MOST:,} attempts, and {found.task} is still due")

    # --- clock and windows ----------------------------------------------------------------

    def now(self) -> datetime:
        """Return PostgreSQL's time, which decides what is due and which windows are open."""
        return self._world.now()

    def move_clock(self, by: timedelta | None = None, *, to: datetime | None = None) -> None:
        """Move that clock by a span, or to an aware time; it goes on from there.

        Python's clock stays: `timezone.now()` in a task is the real time.
        """
        if (by is None) == (to is None):
            raise TypeError("move_clock takes a span, or to=, and not both")
        if to is not None:
            self._world.move_to(to)
        elif by is not None:
            self._world.move(by)

    def open_windows(self) -> None:
        """Let all calendars be open for the rest of the test."""
        self._world.freeze_windows(are_open=True)

    def close_windows(self) -> None:
        """Let all calendars be closed for the rest of the test; runs without calendars start."""
        self._world.freeze_windows(are_open=False)

    def close(self) -> None:
        """End what the test has changed in PostgreSQL; the plugin calls it."""
        self._world.close()


def _publish_at_once(hint: Hint, outbox_id: int) -> None:
    dispatch.publish_singles([(hint, outbox_id)])


class _AtOnce:
    """Django's `transaction` for dispatch, whose hints do not wait for a commit."""

    def on_commit(self, callback: Callable[[], Any], **_options: Any) -> None:
        callback()

    def __getattr__(self, name: str) -> Any:
        return getattr(transaction, name)
