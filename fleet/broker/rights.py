"""Find out which commands of the fair queues' scripts a user of Redis may not send."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from redis import Redis

from fleet.keys import rights_key

_SCRIPT: Final = (Path(__file__).parent / "rights.lua").read_text()


def refused_commands(client: Redis, queue: str) -> list[str]:
    """Return the commands that this client's user may not send on the keys of a fair queue.

    Raises redis-py's NoPermissionError if it may not run scripts, or not on these keys.
    """
    answer = client.eval(_SCRIPT, 1, rights_key(queue))
    # A set, because the script tries DEL more than once.
    return sorted({name.decode() for name in answer})
