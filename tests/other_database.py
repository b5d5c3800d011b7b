"""Another database on the tests' server."""

import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import urlencode

import psycopg
from django.db import connection
from psycopg import sql


@contextmanager
def empty_database() -> Iterator[str]:
    """Yield the URL of an empty database, which goes with the block."""
    name = f"shop_{uuid.uuid4().hex[:8]}"
    known = connection.get_connection_params()
    given = {key: known[key] for key in ("host", "port", "user", "password") if known.get(key)}
    server = f"postgresql:///postgres?{urlencode(given)}"
    with closing(psycopg.connect(server, autocommit=True)) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield server.replace("/postgres?", f"/{name}?")
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
