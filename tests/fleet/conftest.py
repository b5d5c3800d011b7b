"""The named world of the jobs, for scenes in which a worker's edges meet real rows."""

from tests.jobs.conftest import _real_commits, acme, broker, committed, db

__all__ = ["_real_commits", "acme", "broker", "committed", "db"]
