"""Fairshift's settings: one dict `FAIRSHIFT` in Django's settings, read lazily.

Every key has a default here; a key that is not here is refused with the near miss.
Spans are in seconds, sizes in bytes.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

DEFAULTS: Final[dict[str, Any]] = {
    "HEARTBEAT_SECONDS": 10.0,
    "LEASE_SECONDS": 30.0,
    "SWEEP_SECONDS": 5.0,
    "MISFIRE_GRACE_SECONDS": 60.0,
    "AGAIN_SECONDS": 300.0,
    "PUBLISH_TIMEOUT_SECONDS": 1.0,
    "PAYLOAD_MAX_BYTES": 262_144,
    "RESULT_MAX_BYTES": 262_144,
    "MAX_ATTEMPTS": 3,
    "BACKOFF_SECONDS": 2.0,
    "BACKOFF_CAP_SECONDS": 600.0,
    "CANCEL_GRACE_SECONDS": 10.0,
    "PARTITION_DAYS_AHEAD": 30,
    "ALLOW_OTHER_POOLS": False,
    "JOBS_QUEUE": "jobs",
    "SYSTEM_QUEUE": "system",
    "INBOX_QUEUE": "inbox",
    "OFFERED_TASKS": (),
    "HTTP_ALLOWED_HOSTS": (),
    "MANAGEMENT_COMMANDS": (),
}


def unknown_settings() -> list[tuple[str, str | None]]:
    """Return the keys of `FAIRSHIFT` that mean nothing, each with the near miss or None."""
    given = getattr(settings, "FAIRSHIFT", {})
    return [
        (key, next(iter(get_close_matches(key, DEFAULTS, n=1)), None))
        for key in given
        if key not in DEFAULTS
    ]


def setting(name: str) -> Any:
    """Return the value of one Fairshift setting; raises ImproperlyConfigured on an unknown key."""
    given = getattr(settings, "FAIRSHIFT", {})
    if not given.keys() <= DEFAULTS.keys():
        for key, near in unknown_settings():
            hint = f" Did you mean {near!r}?" if near else ""
            raise ImproperlyConfigured(f"FAIRSHIFT has no setting {key!r}.{hint}")
    return given.get(name, DEFAULTS[name])
