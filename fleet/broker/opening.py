"""Opens a connection to the broker that has time limits in place of Kombu's retries."""

from __future__ import annotations

from celery import Celery
from kombu import Connection


def open_connection(app: Celery, *, timeout: float) -> Connection:
    """Return a connection that waits for each answer `timeout` seconds at most, connected."""
    options = {
        **app.conf.broker_transport_options,
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "retry_on_timeout": False,
        "max_retries": 0,
        "interval_start": 0,
        "interval_max": 0,
    }
    connection = app.connection_for_write(transport_options=options)
    # Making the channel connects and pings.
    _ = connection.default_channel
    return connection
