"""A clock in PostgreSQL that stands still until it is moved.

One connection's functions of time are hidden behind others of the same names, in a schema that
it searches first: the statements of `jobs` stay as they are.
"""

import time
from typing import Final

from django.db import connection

from jobs.core import sql

HIDDEN: Final = ("clock_timestamp", "statement_timestamp", "transaction_timestamp", "now")
# Runs of this world are in tables of their own, with the indexes of the real ones: to plan over
# a partition a day takes longer than all that is done here.
TABLES: Final = ("jobs_run", "jobs_attempt")


class FakeClock:
    """The time of this connection, in seconds since 1970."""

    def install(self) -> None:
        """Hide PostgreSQL's clock from this connection."""
        with connection.cursor() as cursor:
            cursor.execute("CREATE SCHEMA fake")
            cursor.execute(
                "CREATE TABLE fake.clock AS SELECT date_trunc('day', clock_timestamp()) AS at"
            )
            for name in HIDDEN:
                cursor.execute(
                    f"CREATE FUNCTION fake.{name}() RETURNS timestamptz "
                    "LANGUAGE sql VOLATILE AS 'SELECT at FROM fake.clock'"
                )
            for table in TABLES:
                cursor.execute(f"CREATE TABLE fake.{table} (LIKE public.{table} INCLUDING ALL)")
            cursor.execute("SET search_path = fake, pg_catalog, public")
            cursor.execute("SET synchronous_commit = off")
        self._begins_at = self.now = self._read()

    def remove(self) -> None:
        """Show PostgreSQL's clock again."""
        sql.query("DROP SCHEMA fake CASCADE")
        sql.query("RESET search_path")
        sql.query("RESET synchronous_commit")

    def restart(self) -> None:
        """Go back to where it began."""
        self.advance(self._begins_at - self.now)

    def advance(self, seconds: float) -> None:
        """Let so much time pass."""
        sql.query("UPDATE fake.clock SET at = at + make_interval(secs => %s)", [float(seconds)])
        before, self.now = self.now, self._read()
        # A connection that was closed behind our back would show the real one.
        assert self.now == before + seconds

    def monotonic(self, moment: float) -> float:
        """Return what `time.monotonic()` would have been at a moment of this clock."""
        return time.monotonic() - (self.now - moment)

    def _read(self) -> float:
        with connection.cursor() as cursor:
            cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
            return float(cursor.fetchone()[0])
