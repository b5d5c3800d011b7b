"""The Redis of the benchmarks, as a client of any process sees it."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qs

from redis import Redis

COUNTER: Final = "benchmarks:done"
"""A string: how many tasks have counted."""

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
