"""How work is shared and run: Celery, Kombu, Redis. Knows neither Django nor jobs.

This is the front door; `route_calls` and `install` are called once, in `config/celery.py`.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from celery import Celery

from fleet.broker.broker import Broker, BrokerUnavailable
from fleet.broker.inbox import Call
from fleet.broker.looks import Found, Look, OwnerLook, Standing
from fleet.broker.owners import Owners, OwnerSettings
from fleet.contract import (
    HEADER,
    Admission,
    Ask,
    Edges,
    Hint,
    Kind,
    Node,
    Refusal,
    Report,
    is_admitted,
    is_hint,
)
from fleet.crash_points import crash_point
from fleet.keys import installation_key
from fleet.plural import counted
from fleet.refusal import Refused
from fleet.router import (
    OWNER_NAME,
    SHARED,
    RouteError,
    acting_as,
    acting_for,
    is_routing,
    owner_header,
    route_calls,
)
from fleet.transport import fair_queues

__all__ = [
    "HEADER",
    "OWNER_NAME",
    "SHARED",
    "Admission",
    "Ask",
    "Broker",
    "BrokerUnavailable",
    "Call",
    "Edges",
    "Found",
    "Hint",
    "Kind",
    "Look",
    "Node",
    "OwnerLook",
    "OwnerSettings",
    "Owners",
    "Refusal",
    "Refused",
    "Report",
    "RouteError",
    "Standing",
    "acting_as",
    "acting_for",
    "counted",
    "crash_point",
    "fair_queues",
    "install",
    "installation_key",
    "is_admitted",
    "is_fair",
    "is_hint",
    "is_installed",
    "is_routing",
    "owner_header",
    "route_calls",
    "use_fair_transport",
]


def use_fair_transport() -> None:
    """Have Redis URLs mean the fair transport, in this process; before the app connects."""
    from fleet.transport import register

    _refuse_other_jobs()
    register()


def _refuse_other_jobs() -> None:
    """Refuse a package of the project's own with the name of ours: it hides Fairshift's.

    `jobs` refuses a package named `fleet`, as nothing of the hidden one can run.
    """
    ours = Path(__file__).resolve().parent.parent / "jobs"
    found = find_spec("jobs")
    places = list(found.submodule_search_locations or [found.origin or ""]) if found else []
    if ours.is_dir() and places and ours not in [Path(place).resolve() for place in places]:
        # Not Refused: Celery's command line shows a trace of what is an Exception.
        raise SystemExit(
            f"The package `jobs` in {places[0]} hides Fairshift's: rename it. A project may have"
            " neither a package nor an app named `jobs` or `fleet` (docs/own-project.md)."
        )


def is_fair(app: Celery) -> bool:
    """Say whether an app's broker is reached by the fair transport in this process."""
    from fleet.transport import Transport

    try:
        return issubclass(app.connection_for_write().get_transport_cls(), Transport)
    except (ImportError, KeyError):
        return False  # a transport that is not installed, or that Kombu does not know


def install(app: Celery, edges: Edges) -> None:
    """Give every worker of an app the edges of durable runs."""
    from fleet.worker.leasing import FairQueues
    from fleet.worker.node import DurableRuns

    # Also where use_fair_transport() was forgotten: this step says so, and Celery would only say
    # that it knows no such step.
    app.steps["worker"].add(FairQueues)
    app.steps["worker"].add(type("DurableRuns", (DurableRuns,), {"edges": edges}))
    app.events.dispatcher_cls = "fleet.worker.events:EventDispatcher"


def is_installed(app: Celery) -> bool:
    """Say whether the workers of an app have been given the edges; known in a worker alone."""
    from fleet.worker.node import DurableRuns

    steps = app.steps["worker"]
    return any(isinstance(step, type) and issubclass(step, DurableRuns) for step in steps)
