"""The table: all rows, by where their guards stand."""

from __future__ import annotations

from typing import Final

from tests.mutations import (
    at_the_doors,
    at_the_gate,
    at_the_worker,
    in_ical,
    in_recovery,
    in_the_queue,
    of_due_times,
    of_unknown_tasks,
    on_the_pages,
    without_history,
)
from tests.mutations.mutation import Mutation

TABLE: Final[tuple[Mutation, ...]] = (
    *at_the_doors.ROWS,
    *at_the_gate.ROWS,
    *at_the_worker.ROWS,
    *in_ical.ROWS,
    *in_recovery.ROWS,
    *in_the_queue.ROWS,
    *of_due_times.ROWS,
    *of_unknown_tasks.ROWS,
    *on_the_pages.ROWS,
    *without_history.ROWS,
)
