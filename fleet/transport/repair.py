"""Keys of the wrong type or with wrong values: the fair queue begins anew with what can be read.

A script that meets such a key fails, and so would every later one. Nothing but a foreign hand
makes one; what a script did before it failed is put right as well, see `lua/repair.lua`. What no
script would stumble over is found by `lua/audit.lua`, which then fails.
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

from fleet.contract import HEADER
from fleet.keys import lua_names, lua_types

logger = logging.getLogger(__name__)

KEPT_SECONDS: Final = 7 * 24 * 3600
KEPT_AT_MOST: Final = 100


_STATE_OF_THE_SERVER: Final = re.compile(
    r"\b(OOM|READONLY|MISCONF|NOREPLICAS|MASTERDOWN|LOADING|CLUSTERDOWN|BUSY|NOAUTH|NOPERM|"
    r"SCRIPT KILL|user executing the script)\b"
)
"""What a script fails for that no key is to blame for."""


def is_wrong_type(result: Any) -> bool:
    """Say whether this is Redis's error about a key of the wrong type, in a script or not."""
    # In a script's error it is a part of the text, elsewhere its beginning.
    return isinstance(result, ResponseError) and "WRONGTYPE" in str(result)


def is_wrong_value(result: Any) -> bool:
    """Say whether this is the error of a script that could not use what it has read."""
    text = str(result) if isinstance(result, ResponseError) else ""
    return "user_script" in text and not _STATE_OF_THE_SERVER.search(text)


def is_spoilt(result: Any) -> bool:
    """Say whether this is an error that `quarantine_wrong_keys` may put right."""
    return is_wrong_type(result) or is_wrong_value(result)


def quarantine_wrong_keys(client: Redis, queue: str, errors: Iterable[Any] = ()) -> bool:
    """Have a queue whose keys are wrong begin anew; False when nothing is wrong any more.

    Of `errors`, those of scripts about a wrong value say that there is one, in whatever key.
    """
    told = [error for error in errors if is_wrong_value(error) and not is_wrong_type(error)]
    limits = (str(KEPT_SECONDS), str(KEPT_AT_MOST), "1" if told else "")
    # The whole text each time: this is rare.
    found: Any = client.eval(_source(), 1, queue, *limits)
    if not found:
        return False
    published, *names = found
    aside = b", ".join(names).decode("utf-8", "replace")
    cause = f"keys of the wrong type are put aside: {aside}" if names else f"{told[0]}"
    logger.error("queue %s begins anew with %d plain messages: %s", queue, published, cause)
    return True


@cache
def _source() -> str:
    text = (files("fleet.transport") / "lua" / "repair.lua").read_text()
    return f"local header = '{HEADER}'\n{lua_names()}{lua_types()}{text}"
