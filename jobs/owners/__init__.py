"""Owners: `limits` sets weights, limits and pauses.

`fair_queue` reads them from the rows and sends them to the fair queues in Redis, where
`fleet/transport/lua/shared/accounts.lua` applies them. `tokens` makes and revokes the tokens with
which programs use the API.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobs.owners.limits import limit_owner as limit
    from jobs.owners.limits import pause_owner as pause
    from jobs.owners.limits import resume_owner as resume

__all__ = ["limit", "pause", "resume"]

_HOMES = {
    "limit": "jobs.owners.limits:limit_owner",
    "pause": "jobs.owners.limits:pause_owner",
    "resume": "jobs.owners.limits:resume_owner",
}

if not TYPE_CHECKING:  # a type checker would take any name for one of ours
    from jobs.core.faces import face

    __getattr__, __dir__ = face(__name__, _HOMES)
