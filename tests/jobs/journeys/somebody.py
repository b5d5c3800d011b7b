"""Somebody else with a connection of their own, who holds the row of a run."""

from uuid import UUID

from django.db import connection


class Somebody:
    """Holds one row at most, from step to step."""

    def __init__(self) -> None:
        self._connection = connection.copy()
        self._connection.set_autocommit(False)

    def hold(self, run_id: UUID) -> None:
        """Hold a run's row, and no other."""
        self.let_go()
        with self._connection.cursor() as cursor:
            cursor.execute("SELECT FROM fake.jobs_run WHERE id = %s FOR UPDATE", [run_id])

    def let_go(self) -> None:
        self._connection.rollback()

    def close(self) -> None:
        # Closing alone would release the row at some later moment.
        self._connection.rollback()
        self._connection.close()
