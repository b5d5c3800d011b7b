"""Keys of the wrong type: put aside, and the fair queue begins anew with what can still be read.

A script that meets such a key fails, and so would every later one. Nothing but a foreign hand
makes one; what a script did before it failed is put right as well, see `lua/mend.lua`.
"""

from __future__ import annotations

import logging
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


def is_wrong_type(result: Any) -> bool:
    """Say whether this is Redis's error about a key of the wrong type, in a script or not."""
    # In a script's error it is a part of the text, elsewhere its beginning.
    return isinstance(result, ResponseError) and "WRONGTYPE" in str(result)


def mend(client: Redis, queue: str) -> bool:
    """Put a queue's keys of the wrong type aside; False when there are none, or none any more."""
    # The whole text each time: this is rare.
    found: Any = client.eval(_source(), 1, queue, str(KEPT_SECONDS), str(KEPT_AT_MOST))
    if not found:
        return False
    published, *names = found
    logger.error(
        "keys of the wrong type are put aside, queue %s begins anew with %d plain messages: %s",
        *(queue, published, b", ".join(names).decode("utf-8", "replace")),
    )
    return True


@cache
def _source() -> str:
    text = (files("fleet.transport") / "lua" / "mend.lua").read_text()
    return f"local header = '{HEADER}'\n{lua_names()}{lua_types()}{text}"
