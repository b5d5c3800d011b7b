"""PostgreSQL and Redis from wheels, which start automatically if no URL is set.

A detached process, the keeper, owns both servers. Each process that needs one keeps a file locked;
when no process has the lock any more, the keeper stops the server and ends. Nothing listens on TCP.
"""

from config.embedded.client import ensure

__all__ = ("ensure",)
