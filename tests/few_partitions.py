"""A test database with few partitions, for conftests of scenes that plan many statements.

A statement that no id narrows down is planned over every partition: 10 ms over the 64 of an
installation, 30 ms on a new connection. Proofs and benchmarks keep all of them.
"""

from typing import Any, Final

import pytest

from jobs.core import sql

KEPT_DAYS: Final = 2  # after today, as `PARTITION_DAYS_AHEAD`
LATER: Final = """
SELECT relname AS name FROM pg_class WHERE relkind = 'r'
AND relname ~ '^jobs_(run|attempt|log)_[0-9]{{8}}$' AND to_date(right(relname, 8), 'YYYYMMDD') >
(clock_timestamp() AT TIME ZONE 'UTC')::date + {after_days}
"""


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """The test database, without the empty partitions of later days."""
    with django_db_blocker.unblock():
        drop_partitions(after_days=KEPT_DAYS)


def drop_partitions(*, after_days: int) -> None:
    """Drop the partitions of days that are later than so many after today (UTC)."""
    for row in sql.query(LATER.format(after_days=after_days)):
        sql.query(f"DROP TABLE {row['name']}")
