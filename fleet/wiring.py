"""Installs the fair transport for Redis URLs, and our boot steps in the workers of an app."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from celery import Celery, signals
from kombu import transport as kombu_transport
from kombu.clocks import LamportClock

from fleet.contract import Application
from fleet.transport.transport import Transport, fair_queues

SCHEMES: Final = {
    "redis": "fleet.transport.transport:Transport",
    "rediss": "fleet.transport.transport:Transport",
    "sentinel": "fleet.transport.transport:SentinelTransport",
}
LATEST: Final = 2**62
"""The latest time that is accepted from another process's logical clock."""
_adjust: Final = LamportClock.adjust


def use_fair_transport() -> None:
    """Use the fair transport for Redis URLs in this process; call it before the app connects."""
    _refuse_other_jobs()
    register()


def _refuse_other_jobs() -> None:
    """Refuse another package named `jobs`, which hides Fairshift's.

    `jobs` refuses one named `fleet`, as this code would not run.
    """
    ours = Path(__file__).resolve().parent.parent / "jobs"
    found = find_spec("jobs")
    places = list(found.submodule_search_locations or [found.origin or ""]) if found else []
    if ours.is_dir() and places and ours not in [Path(place).resolve() for place in places]:
        # Not Refused: Celery's command line shows a traceback for an Exception.
        raise SystemExit(
            f"The package `jobs` in {places[0]} hides Fairshift's: rename it. A project may have"
            " neither a package nor an app named `jobs` or `fleet` (docs/start/own-project.md)."
        )


def is_fair(app: Celery) -> bool:
    """Say whether an app's broker is reached by the fair transport in this process."""
    try:
        return issubclass(app.connection_for_write().get_transport_cls(), Transport)
    except (ImportError, KeyError):
        return False  # the transport is not installed, or unknown to Kombu


def install(app: Celery, application: Application) -> None:
    """Give every worker of an app the boot step of durable runs."""
    from fleet.worker.leasing import FairQueues
    from fleet.worker.node import DurableRuns

    # Also without use_fair_transport(): this step raises a better error than Celery.
    app.steps["worker"].add(FairQueues)
    ours = {"application": application, "__module__": __name__}  # else it would be Celery's
    app.steps["worker"].add(type("DurableRuns", (DurableRuns,), ours))
    app.events.dispatcher_cls = "fleet.worker.events:EventDispatcher"


def is_installed(app: Celery) -> bool:
    """Say whether the workers of an app have that boot step; known in a worker only."""
    from fleet.worker.node import DurableRuns

    steps = app.steps["worker"]
    return any(isinstance(step, type) and issubclass(step, DurableRuns) for step in steps)


def register() -> None:
    """Have Kombu use this transport for Redis URLs in this process.

    By the URL's scheme, not by Celery's `broker_transport`: that would use the stock transport for
    `redis+socket://`, the wrong class for `sentinel://`, and break Flower.
    """
    kombu_transport.TRANSPORT_ALIASES.update(SCHEMES)
    for scheme in SCHEMES:
        kombu_transport._transport_cache.pop(scheme, None)
    LamportClock.adjust = _adjust_to_times  # type: ignore[method-assign, assignment]
    # Every worker sends it, also one of `celery.contrib.testing`, before its steps are chosen.
    signals.worker_init.connect(_add_step, weak=False)


def _adjust_to_times(clock: LamportClock, other: Any) -> int:
    """Advance a logical clock beyond another's time; an impossible time counts as 0.

    Python reads a number of 4,300 digits, but cannot write one of 4,301.
    """
    is_time = isinstance(other, int) and 0 <= other <= LATEST
    return _adjust(clock, other if is_time else 0)


def _add_step(sender: Any, **_signal: Any) -> None:
    """Give a worker that is about to boot the step that renews its leases."""
    from fleet.worker.leasing import FairQueues

    if fair_queues(sender.app):
        sender.app.steps["worker"].add(FairQueues)
