"""Rebuilds a fair queue that has keys of the wrong type or wrong values.

Every script that meets such a key fails. Only other software makes them. `lua/repair.lua` also
completes what a script had begun before it failed; `lua/audit.lua` finds wrong values that no other
script meets, and fails then.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, Final

from redis import Redis
from redis.exceptions import ResponseError

from fleet import log_events
from fleet.contract import HEADER
from fleet.keys import lua_names, lua_types

logger = logging.getLogger(__name__)

KEPT_SECONDS: Final = 7 * 24 * 3600
KEPT_AT_MOST: Final = 100


_STATE_OF_THE_SERVER: Final = re.compile(
    r"\b(OOM|READONLY|MISCONF|NOREPLICAS|MASTERDOWN|LOADING|CLUSTERDOWN|BUSY|NOAUTH|NOPERM|"
    r"SCRIPT KILL|user executing the script)\b"
)
"""Errors of the server's state, which no key causes."""


def is_wrong_type(result: Any) -> bool:
    """Say whether this is Redis's error about a key of the wrong type, in a script or not."""
    return isinstance(result, ResponseError) and "WRONGTYPE" in str(result)


def is_wrong_value(result: Any) -> bool:
    """Say whether this is the error of a script that could not use a value."""
    text = str(result) if isinstance(result, ResponseError) else ""
    return "user_script" in text and not _STATE_OF_THE_SERVER.search(text)


def is_spoilt(result: Any) -> bool:
    """Say whether this is an error that `quarantine_wrong_keys` may repair."""
    return is_wrong_type(result) or is_wrong_value(result)


def quarantine_wrong_keys(client: Redis, queue: str, errors: Iterable[Any] = ()) -> bool:
    """Rebuild a queue that has wrong keys; False if none is wrong.

    `errors` are those of scripts: one about a wrong value means that some key has one.
    """
    told = [error for error in errors if is_wrong_value(error) and not is_wrong_type(error)]
    limits = (str(KEPT_SECONDS), str(KEPT_AT_MOST), "1" if told else "")
    # Not cached on the server, as it is rare.
    found: Any = client.eval(_source(), 1, queue, *limits)
    if not found:
        return False
    published, *names = found
    aside = b", ".join(names).decode("utf-8", "replace")
    cause = f"keys of the wrong type are put aside: {aside}" if names else f"{told[0]}"
    log_events.QUEUE_REPAIRED.log(logger, queue=queue, count=int(published), cause=cause)
    return True


@cache
def _source() -> str:
    text = (files("fleet.transport") / "lua" / "repair.lua").read_text()
    return f"local header = '{HEADER}'\n{lua_names()}{lua_types()}{text}"
