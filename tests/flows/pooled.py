"""Ways to PostgreSQL that share connections: PgBouncer in transaction mode, and Django's pool."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.flows.processes import database_url
from tests.pgbouncer import pgbouncer

SERVER_CONNECTIONS: Final = 2
"""Those that PgBouncer shares: fewer than web processes have threads."""
DJANGOS_POOL: Final = {"DJANGO_SETTINGS_MODULE": "tests.flows.pooled_settings"}


@contextmanager
def behind_pgbouncer() -> Iterator[dict[str, str]]:
    """Yield the variables of a process that connects through PgBouncer in transaction mode."""
    with pgbouncer(database_url(), mode="transaction", size=SERVER_CONNECTIONS) as url:
        yield {"DATABASE_URL": url, "DATABASE_TRANSACTION_POOLER": "on"}
