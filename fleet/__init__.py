"""How work is shared and run: Celery, Kombu, Redis. Knows neither Django nor jobs.

This is the front door; `route_calls` and `install` are called once, in `config/celery.py`.
"""

from __future__ import annotations

from celery import Celery

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
from fleet.faults import crash_point
from fleet.hints import Broker, BrokerUnavailable
from fleet.inbox import Call
from fleet.keys import installation_key
from fleet.owners import Owners, OwnerSettings
from fleet.router import (
    OWNER_NAME,
    SHARED,
    RouteError,
    acting_as,
    acting_for,
    owner_header,
    route_calls,
)
from fleet.sight import Found, Look, OwnerLook, Standing
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
    "Report",
    "RouteError",
    "Standing",
    "acting_as",
    "acting_for",
    "crash_point",
    "fair_queues",
    "install",
    "installation_key",
    "is_admitted",
    "is_hint",
    "owner_header",
    "route_calls",
    "use_fair_transport",
]


def use_fair_transport() -> None:
    """Have Redis URLs mean the fair transport, in this process; before the app connects."""
    from fleet.transport import register

    register()


def install(app: Celery, edges: Edges) -> None:
    """Give every worker of an app the edges of durable runs."""
    from fleet.steps.node import DurableRuns

    app.steps["worker"].add(type("DurableRuns", (DurableRuns,), {"edges": edges}))
    app.events.dispatcher_cls = "fleet.events:EventDispatcher"
