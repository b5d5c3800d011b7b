"""System checks with ids: each names what would break a promise, and the fix.

E001 to E009 only read settings and run with every command; E010 to W023 look at how Celery is
wired; E034 to W036 at the key ring. E1xx ask PostgreSQL and run with `migrate` and `check
--database default`; E2xx ask Redis. `check --deploy` runs all. `boot` refuses a worker at its boot.
`jobs/core/conf.py` has the limits of each single setting.
"""

from jobs.checks import (  # noqa: F401  each registers its checks
    boot,
    broker,
    database,
    encryption,
    history,
    ignored_results,
    settings,
    wiring,
)
