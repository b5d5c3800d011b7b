"""Switches PostgreSQL's JIT compiler off for the connections that Fairshift uses.

It is on in a PostgreSQL with LLVM, and compiles statements that the planner takes for expensive. It
takes `enable_seqscan = off` for an expense of 10^10, and adds up 33 partitions where one is read:
a minute of statistics took over 20 s to compile, and 0.1 s to count.
"""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from jobs.core import sql


def switch_jit_off() -> None:
    """Have each new connection of this process to the default database begin without JIT.

    A connection, not a statement: the settings in DATABASES are the project's, and any large query
    of a page may be compiled, too. Behind a pooler that keeps no session, the pooler's own settings
    do it (docs/operate/scale.md).
    """
    connection_created.connect(_switch_off, dispatch_uid="fairshift jit")


def _switch_off(connection: BaseDatabaseWrapper, **_signal: object) -> None:
    if connection.alias != DEFAULT_DB_ALIAS or connection.vendor != "postgresql":
        return
    if not sql.keeps_session(connection):
        return
    with connection.cursor() as cursor:
        cursor.execute("SET jit = off")
