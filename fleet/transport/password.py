"""A password that Redis refuses: a server that is there, and that a restart does not mend.

Redis goes on answering connections that were open when their password changed. Only new ones are
refused, so processes notice it one after the other.
"""

from __future__ import annotations

import logging

from redis.exceptions import AuthenticationError

from fleet import log_events


def refuses_password(error: BaseException | None) -> bool:
    """Say whether an error, or one that caused it, is a user or password that Redis refuses."""
    while error is not None and not isinstance(error, AuthenticationError):
        error = error.__cause__ or error.__context__
    return error is not None


def logs_refused_password(logger: logging.Logger, error: BaseException) -> bool:
    """Log this error if it is a refused password; say whether it is."""
    is_refused = refuses_password(error)
    if is_refused:
        log_events.PASSWORD_REFUSED.log(logger, error=error)
    return is_refused
