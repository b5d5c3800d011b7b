"""The demo's tasks, over HTTP: activate a ruleset or firmware on a device, check its health."""

import os
from functools import lru_cache
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import urllib3
from django.conf import settings

from jobs.catalog.context import current_run
from jobs.catalog.registry import job

# Well above the slowest healthy device (0.4 s), well below a slow one (4 s).
CALL_SECONDS = 2.0
UPGRADE_SECONDS = 1


class DeviceError(Exception):
    """A device answered with an error; the next attempt may work."""


class RefusalError(Exception):
    """A device refused the request: an operator must look at it before the next attempt."""


@job(max_attempts=5, backoff_seconds=0.5, backoff_cap_seconds=4)
def activate_ruleset(device: str, version: int) -> dict[str, Any]:
    """Activate a version of the ruleset on one device and return what the device then has."""
    return _activate(device, "ruleset", version)


# An upgrade starts only if it can end before the window closes.
@job(
    max_attempts=5,
    backoff_seconds=0.5,
    backoff_cap_seconds=4,
    soft_time_limit_seconds=UPGRADE_SECONDS,
    give_up_on=[RefusalError],
)
def upgrade_firmware(device: str, version: int) -> dict[str, Any]:
    """Install a firmware on one device and return what the device then has."""
    return _activate(device, "firmware", version)


@job(max_attempts=2, backoff_seconds=0.5)
def check_health(device: str) -> dict[str, Any]:
    """Check the health of one device."""
    run = current_run()
    asking = run.run_id if run else uuid4()
    return _call("GET", f"/devices/{quote(device, safe='')}/health?run={asking}")


def _activate(device: str, what: str, version: int) -> dict[str, Any]:
    run = current_run()
    content = {
        "version": version,
        "run": str(run.run_id) if run else None,
        "attempt": run.attempt if run else None,
    }
    return _call("PUT", f"/devices/{quote(device, safe='')}/{what}", content)


def _call(method: str, path: str, content: dict[str, Any] | None = None) -> dict[str, Any]:
    response = _connections(os.getpid()).request(
        method, settings.DEMO_DEVICES_URL + path, json=content
    )
    if response.status != 200:
        body = response.data[:200]
        error = RefusalError if response.status == 409 else DeviceError
        raise error(f"{method} {path} was answered with {response.status}: {body!r}")
    return dict(response.json())


@lru_cache(maxsize=1)
def _connections(_process_id: int) -> urllib3.PoolManager:
    """Return the connections of a process: a forked child must not use its parent's sockets."""
    return urllib3.PoolManager(retries=False, timeout=CALL_SECONDS)
