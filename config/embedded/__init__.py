"""PostgreSQL and Redis from wheels, which start automatically if no URL is set.

A detached supervisor process owns both servers. Each process that needs them keeps a connection to
it; when the last one is closed, the supervisor stops the servers and ends. Nothing listens on TCP.
"""

from config.embedded.client import ensure

__all__ = ("ensure",)
