"""The PeriodicTasks of a new installation, for tests that have removed them."""

from importlib import import_module

from django.apps import apps

migration = import_module("jobs.migrations.0006_periodic_tasks")
rollups = import_module("jobs.migrations.0010_rollups")
retention = import_module("jobs.migrations.0015_retention")


def make_periodic_tasks() -> None:
    """Make those that are missing, as the migrations do."""
    migration.make_periodic_tasks(apps, None)
    rollups.make_periodic_task(apps, None)
    retention.make_periodic_task(apps, None)
