"""PostgreSQL's clock and the windows, as the test's connection sees them.

A schema before `pg_catalog` in the search path has functions of the same names. So each statement,
and each function that a statement calls, reads the test's time; other connections do not. Not
changed: `CURRENT_TIMESTAMP`, defaults of columns, and Python's own clock (`timezone.now()`).
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

import pytest
from django.db import DatabaseError, connection, transaction

from jobs.calendars import gate
from jobs.core import sql
from jobs.core.errors import OptionError
from jobs.core.inputs import refuse_naive
from jobs.core.states import State
from jobs.models import Run, WindowPolicy
from jobs.runs.gate import gate_runs
from jobs.windows import CalendarHours, Gate
from jobs.windows.gate import OPEN

SCHEMA: Final = "fairshift_test"
CLOCKS: Final = ("clock_timestamp", "statement_timestamp", "transaction_timestamp", "now")
_CLOCK: Final = """
CREATE OR REPLACE FUNCTION {schema}.{name}() RETURNS timestamptz LANGUAGE sql {volatility} AS $$
    SELECT pg_catalog.{name}() + make_interval(secs => {seconds})
$$
"""
_GATE: Final = """
CREATE OR REPLACE FUNCTION {schema}.jobs_gate(
    calendars bigint[], at timestamptz,
    OUT until timestamptz, OUT soft_at timestamptz, OUT hard_at timestamptz
) LANGUAGE sql STABLE STRICT AS $$
    SELECT {until}::timestamptz, NULL::timestamptz, NULL::timestamptz
$$
"""


class TestWorld:
    """The schema of one test; made when the clock or the windows are first changed."""

    __test__ = False

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._path: str | None = None
        self._ahead = timedelta()

    def now(self) -> datetime:
        """Return the time that statements of this connection read."""
        return sql.now()

    def move(self, by: timedelta) -> None:
        """Move the clock; it goes on from there. A negative span moves it back."""
        self._open()
        self._ahead += by
        for name in CLOCKS:
            # Volatility as in pg_catalog: a plan may read the others once.
            volatility = "VOLATILE" if name == "clock_timestamp" else "STABLE"
            seconds = repr(self._ahead.total_seconds())
            sql.query(
                _CLOCK.format(schema=SCHEMA, name=name, volatility=volatility, seconds=seconds)
            )

    def move_to(self, moment: datetime) -> None:
        """Move the clock to a moment, an aware time; it goes on from there."""
        refuse_naive("moment", moment)
        self.move(moment - self.now())

    def freeze_windows(self, *, are_open: bool) -> None:
        """Let all calendars be open, or all be closed, whatever their windows say."""
        self._open()
        sql.query(_GATE.format(schema=SCHEMA, until="'infinity'" if are_open else "NULL"))
        frozen = OPEN if are_open else Gate()

        def gated(
            given: gate.GateInput,
            known: dict[int, CalendarHours],
            *,
            now: datetime,
            delay: timedelta,
        ) -> Gate:
            # As always: windows that do not exist, or are overridden, are not closed.
            if not given.calendars or given.policy == WindowPolicy.OVERRIDDEN:
                return _GATE_OF_ONE(given, known, now=now, delay=delay)
            return frozen

        self._monkeypatch.setattr(gate, "gate_of_one", gated)
        self._gate_waiting()

    def close(self) -> None:
        """Restore the search path and drop the schema; with the test's transaction both end."""
        if self._path is None:
            return
        with suppress(DatabaseError), transaction.atomic():
            sql.query("SELECT set_config('search_path', %s, false)", [self._path])
            sql.query(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        self._path = None

    def _open(self) -> None:
        if self._path is not None:
            return
        if connection.vendor != "postgresql":
            raise OptionError("clock", "needs PostgreSQL")
        [row] = sql.query("SELECT current_setting('search_path') AS path")
        self._path = row["path"]
        sql.query(f"CREATE SCHEMA {SCHEMA}")
        # Tables stay in the schemas of the old path: the first one that may hold a table is theirs.
        path = f"{SCHEMA}, pg_catalog, {self._path}"
        sql.query("SELECT set_config('search_path', %s, false)", [path])

    def _gate_waiting(self) -> None:
        waiting = Run.objects.filter(state__in=[State.HELD, State.QUEUED])
        with transaction.atomic():
            gate_runs(list(waiting.values_list("id", flat=True)), cause="calendar changed")


_GATE_OF_ONE: Final = gate.gate_of_one
