"""Rows of a new installation, for tests that have removed or changed them."""

from importlib import import_module

from django.apps import apps

from jobs.core import sql

migration = import_module("jobs.migrations.0006_periodic_tasks")
rollups = import_module("jobs.migrations.0010_rollups")
retention = import_module("jobs.migrations.0015_retention")
later = import_module("jobs.migrations.0024_rounds_by_the_pulse")


def make_periodic_tasks() -> None:
    """Make those that are missing, as the migrations do."""
    migration.make_periodic_tasks(apps, None)
    rollups.make_periodic_task(apps, None)
    retention.make_periodic_task(apps, None)
    later.remove_periodic_tasks(apps, None)


def make_cursor() -> None:
    """Put the cursor of due times at this moment."""
    sql.query("DELETE FROM jobs_cursor")
    sql.query(
        "INSERT INTO jobs_cursor (slot, beat_at, again_seen) VALUES "
        "(floor(extract(epoch FROM clock_timestamp()) * 2), clock_timestamp(), "
        "pg_current_snapshot())"
    )
