"""The cursor of a new installation, for tests that have removed or changed it."""

from jobs.core import sql


def make_cursor() -> None:
    """Put the cursor of due times at this moment."""
    sql.query("DELETE FROM jobs_cursor")
    sql.query(
        "INSERT INTO jobs_cursor (slot, beat_at, again_seen) VALUES "
        "(floor(extract(epoch FROM clock_timestamp()) * 2), clock_timestamp(), "
        "pg_current_snapshot())"
    )
