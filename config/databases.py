"""Django's settings of the PostgreSQL connection, from DATABASE_URL."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from config.postgresql.base import limit_patience
from jobs.core.sql import keeps_session

# libpq's names and Django's; all others go into OPTIONS.
DJANGO_NAMES = {
    "dbname": "NAME",
    "user": "USER",
    "password": "PASSWORD",
    "host": "HOST",
    "port": "PORT",
}

# A peer that vanished is noticed within about 15 seconds. libpq ignores these on a unix socket.
CONNECTION_OPTIONS = {
    "connect_timeout": "5",
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",  # milliseconds
    "application_name": "fairshift",
}


def postgresql_settings(url: str) -> dict[str, Any]:
    """Return the DATABASES entry for a libpq URL; its own query options win over ours."""
    try:
        given = conninfo_to_dict(url)
    except ProgrammingError:
        # libpq's message may repeat a password in the URL.
        raise ImproperlyConfigured(
            "DATABASE_URL is not a valid PostgreSQL URL; its form is"
            " postgresql://user:password@host:port/name?option=value."
        ) from None
    if not given.get("dbname"):
        raise ImproperlyConfigured("DATABASE_URL names no database; add it as /name.")
    named = {DJANGO_NAMES[key]: str(given.pop(key)) for key in DJANGO_NAMES if key in given}
    return {
        "ENGINE": "config.postgresql",
        **named,
        "OPTIONS": CONNECTION_OPTIONS | {key: str(value) for key, value in given.items()},
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }


def limit_waits() -> None:
    """Limit the waits of a web process, on its new connections.

    A statement takes WEB_STATEMENT_TIMEOUT_SECONDS at most, and a server that does not answer at
    all is given up within 2 s. Behind a pooler that keeps no session, the first limit is the
    pooler's.
    """
    limit_patience()
    connection_created.connect(_limit_statements, dispatch_uid="statement timeout")


def _limit_statements(connection: BaseDatabaseWrapper, **_signal: object) -> None:
    if not keeps_session(connection):
        return
    milliseconds = round(settings.WEB_STATEMENT_TIMEOUT_SECONDS * 1000)
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, false)", [str(milliseconds)])
