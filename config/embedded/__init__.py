"""PostgreSQL and Redis that start by themselves from wheels when no URL is set.

One detached supervising process owns both servers. Every process of the project
that needs them holds a connection to it; when the last one is gone, the
supervisor stops the servers and ends. Nothing listens on TCP.
"""

from config.embedded.client import ensure

__all__ = ("ensure",)
