"""The demo's devices, and the report about them. Pure.

A device's response time and the failures of its first attempts are drawn from the seed, so the same
seed gives the same devices.
"""

import math
import random
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

FIRST_VERSION = 41
MEDIAN_SECONDS = 0.040
SPREAD = 0.7
SLOWEST_SECONDS = 0.400
MAX_FAILURES_IN_A_ROW = 2
TWICE_SHARE = 0.25
CHECK_SECONDS = 60

UNAVAILABLE = "unavailable"  # 503, nothing activated
DROPPED = "dropped"  # the connection ends before anything is activated
SLOW = "slow"  # answers after the client's timeout; never activates
ANSWER_LOST = "answer lost"  # activated, but the connection ends before the answer
REFUSED = "refused"  # 409, nothing activated; a client that tries again at once is in vain
CLIENT_GONE = "client gone"  # the client hung up before the device was ready; not activated
PLANNED_FAILURES = (UNAVAILABLE, DROPPED, SLOW, ANSWER_LOST)

MAX_VERSION = 2**31 - 1
Number = Annotated[int, Field(strict=True, ge=1, le=MAX_VERSION)]


@dataclass(frozen=True, slots=True)
class Request:
    """A call to activate a version; run and attempt are the caller's, for the report."""

    version: Number
    run: Annotated[str, Field(max_length=100)] | None = None
    attempt: Number | None = None


@dataclass(slots=True)
class Device:
    """A device, its planned failures, and everything that happened to it."""

    name: str
    response_seconds: float
    version: int = FIRST_VERSION
    failures: deque[str] = field(default_factory=deque)
    events: list[dict[str, Any]] = field(default_factory=list)
    checks: list[tuple[float, str]] = field(default_factory=list)
    """The health checks: the time, in seconds of the server's clock, and the run."""

    def next_failure(self) -> str | None:
        """Take the failure of the attempt that begins now; None if it succeeds."""
        return self.failures.popleft() if self.failures else None

    def activated(self, request: Request, /) -> None:
        self.version = request.version
        self._log(request, "activated", None)

    def was_activated_by(self, request: Request, /) -> bool:
        """Say whether this attempt of this run has activated its version."""
        activated = {"outcome": "activated", **asdict(request)}
        return any(activated.items() <= event.items() for event in self.events)

    def failed(self, request: Request, /, *, reason: str) -> None:
        self._log(request, "failed", reason)

    def events_of(self, version: int) -> Iterator[dict[str, Any]]:
        return (event for event in self.events if event["version"] == version)

    def _log(self, request: Request, outcome: str, reason: str | None) -> None:
        event = {"outcome": outcome, "version": request.version}
        event |= {"run": request.run, "attempt": request.attempt}
        self.events.append(event | ({"reason": reason} if reason else {}))


def device_names(count: int, /) -> list[str]:
    """Return fw-0001, fw-0002 …"""
    return [f"fw-{number:04}" for number in range(1, count + 1)]


def lab_names(count: int, /) -> list[str]:
    """Return lab-1, lab-2 …"""
    return [f"lab-{number}" for number in range(1, count + 1)]


def make_devices(
    names: Iterable[str], *, seed: int, failing_share: float = 0.02
) -> dict[str, Device]:
    """Return the devices by name; `failing_share` of them (rounded up) fail at first.

    The kinds of failure alternate, so that few devices show all of them. A quarter of the failing
    devices fail twice in a row.
    """
    draw = random.Random(seed)  # noqa: S311  it must be repeatable
    devices = {name: Device(name, _response_seconds(draw)) for name in names}
    failing = draw.sample(sorted(devices), math.ceil(len(devices) * failing_share))
    for turn, name in enumerate(failing):
        count = MAX_FAILURES_IN_A_ROW if draw.random() < TWICE_SHARE else 1
        kinds = (PLANNED_FAILURES[(turn + n) % len(PLANNED_FAILURES)] for n in range(count))
        devices[name].failures.extend(kinds)
    return devices


def doubled(events: Iterable[dict[str, Any]]) -> int:
    """Count the activations that followed another one without a failed attempt in between.

    A lost answer is logged as a failed attempt: the client must try again.
    """
    extra = 0
    was_activated = False
    for event in events:
        if event["outcome"] == "activated":
            extra += was_activated
        was_activated = event["outcome"] == "activated"
    return extra


def report(devices: dict[str, Device], *, version: int) -> dict[str, Any]:
    """Return each device's version and its events of `version`, and their sums."""
    events = {name: list(device.events_of(version)) for name, device in devices.items()}
    everything = [event for happened in events.values() for event in happened]
    return {
        "version": version,
        "devices": len(devices),
        "verified": sum(device.version == version for device in devices.values()),
        "missing": [name for name, device in devices.items() if device.version != version],
        "activations": sum(event["outcome"] == "activated" for event in everything),
        "failed_attempts": sum(event["outcome"] == "failed" for event in everything),
        "doubled": sum(map(doubled, events.values())),
        "doubled_devices": [name for name, happened in events.items() if doubled(happened)],
        "versions": {name: device.version for name, device in devices.items()},
        "events": {name: happened for name, happened in events.items() if happened},
        **_checks(devices.values()),
    }


def _checks(devices: Iterable[Device]) -> dict[str, Any]:
    """Return the figures of health checks: one run a minute checks each device.

    A run may check again in its next attempt. If the due times of two runs are less than half a
    minute apart, one is too many. `checks_a_second` has the full seconds.
    """
    checked = [device.checks for device in devices]
    doubled = 0
    for checks in checked:
        due = sorted(_due_seconds(run) for run in {run for _, run in checks})
        doubled += sum(later - earlier < CHECK_SECONDS / 2 for earlier, later in pairwise(due))
    seconds = Counter(int(at) for checks in checked for at, _ in checks)
    full = range(min(seconds) + 1, max(seconds)) if seconds else range(0)
    return {
        "checks": seconds.total(),
        "checks_doubled": doubled,
        "checks_a_second": [seconds[second] for second in full],
    }


def _due_seconds(run: str) -> float:
    """Return the time in a run's id: the first 48 bits are milliseconds (RFC 9562)."""
    return (UUID(run).int >> 80) / 1000


def _response_seconds(draw: random.Random) -> float:
    return min(draw.lognormvariate(math.log(MEDIAN_SECONDS), SPREAD), SLOWEST_SECONDS)
