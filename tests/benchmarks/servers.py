"""The servers of the benchmarks, as a client of any process sees them."""

from typing import Final
from urllib.parse import parse_qs

from redis import Redis

COUNTER: Final = "benchmarks:done"
"""A string: how many tasks have counted."""

DURABLE: Final = ("fsync", "synchronous_commit", "full_page_writes")
"""What PostgreSQL must have on, or a commit may be lost."""

_SOCKET: Final = "redis+socket://"


def client(url: str) -> Redis:
    """Return a client for a broker URL of Celery's form."""
    if url.startswith(_SOCKET):
        path, _, query = url.removeprefix(_SOCKET).partition("?")
        [database] = parse_qs(query).get("virtual_host", ["0"])
        return Redis(unix_socket_path=path, db=int(database.strip("/") or 0))
    return Redis.from_url(url)


def stock_url(url: str) -> str:
    """Return the URL by which `tests.benchmarks.stock` reaches the same server.

    Kombu finds a transport by the URL's scheme alone, and Fairshift registers its own for redis.
    """
    if not url.startswith((_SOCKET, "redis://")):
        scheme, _, _ = url.partition(":")
        raise ValueError(f"Benchmarks run on redis:// or {_SOCKET}, not on {scheme}.")
    return "stock" + url.removeprefix("redis")


def shown(setting: str) -> str:
    """Return a setting of PostgreSQL's as a session of the project has it."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting(%s)", [setting])
        return str(cursor.fetchone()[0])
