"""The backend: Django's own, and in web processes with limited waits for a silent server."""

from __future__ import annotations

from typing import Any

from django.db.backends.postgresql import base

from config.postgresql.silence import refuse_silent, watched


class Patience:
    """Whether this process waits for a silent server as long as PostgreSQL's settings say."""

    is_limited = False


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection; in web processes it raises OperationalError when the server is silent."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        if not Patience.is_limited:
            return super().get_new_connection(conn_params)
        refuse_silent(str(conn_params.get("host") or ""), conn_params.get("port"))
        made = super().get_new_connection(conn_params)
        # The class's: a pool gives the same connection again.
        wait = type(made).wait

        def wait_watched(waiting: Any, *args: Any, **kwargs: Any) -> Any:
            return wait(made, watched(waiting, made), *args, **kwargs)

        made.wait = wait_watched
        return made


def limit_patience() -> None:
    """Have each new connection of this process give a silent server up within 2 s."""
    Patience.is_limited = True
