"""System checks with ids: each names what would break a promise, and the fix.

E0xx read settings alone and run with every command. E1xx ask PostgreSQL and run
with `migrate` and `check --database default`; E2xx ask Redis. `check --deploy` runs all.
"""

from jobs.checks import broker, database, settings

__all__ = ("broker", "database", "settings")
