"""How work is shared and run: Celery, Kombu, Redis. Knows neither Django nor jobs.

Other packages import from here. `config/celery.py` calls `use_fair_transport`, `route_calls` and
`install` once. Everything that is changed in Celery is listed in `patches`.
"""

# ruff: noqa: E402  The names that Fairshift needs are looked for before any of them is imported.
from __future__ import annotations

from fleet.versions import refuse_missing_names, untested_versions

refuse_missing_names()

from fleet.broker.broker import Broker
from fleet.broker.inbox import Call
from fleet.broker.leaving import (
    OWN_TASKS,
    count_keys,
    delete_keys,
    messages_left,
    move_calls,
)
from fleet.broker.owners import Owners, OwnerSettings
from fleet.broker.request_rates import SharedRequestRates
from fleet.broker.rights import refused_commands
from fleet.broker.snapshot import MessagePosition, OwnerSnapshot, OwnerState, Snapshot
from fleet.broker.waiting import WaitingMessage, waiting_messages
from fleet.callbacks import may_log
from fleet.contract import (
    HEADER,
    Admission,
    AdmissionRequest,
    Application,
    Asked,
    BrokerUnavailable,
    Hint,
    Kind,
    LogChunk,
    Look,
    Node,
    Orders,
    Refusal,
    Report,
    Unseen,
    is_admitted,
    is_hint,
)
from fleet.coroutines import NeverAwaited, is_never_awaited
from fleet.crash_points import crash_point
from fleet.fairness.request_rate import Bucket, RequestRates, Verdict
from fleet.keys import installation_key
from fleet.logs import BoundFacts, Event, bind, bind_process, bound_facts, one_line
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
from fleet.tracing import continuing, current_traceparent, trace_id_of
from fleet.transport.password import refuses_password
from fleet.transport.transport import fair_queues
from fleet.wiring import install, is_fair, is_installed, use_fair_transport

__all__ = [
    "HEADER",
    "OWNER_NAME",
    "OWN_TASKS",
    "SHARED",
    "Admission",
    "AdmissionRequest",
    "Application",
    "Asked",
    "BoundFacts",
    "Broker",
    "BrokerUnavailable",
    "Bucket",
    "Call",
    "Event",
    "Hint",
    "Kind",
    "LogChunk",
    "Look",
    "MessagePosition",
    "NeverAwaited",
    "Node",
    "Orders",
    "OwnerSettings",
    "OwnerSnapshot",
    "OwnerState",
    "Owners",
    "Refusal",
    "Refused",
    "Report",
    "RequestRates",
    "RouteError",
    "SharedRequestRates",
    "Snapshot",
    "Unseen",
    "Verdict",
    "WaitingMessage",
    "acting_as",
    "acting_for",
    "bind",
    "bind_process",
    "bound_facts",
    "continuing",
    "count_keys",
    "counted",
    "crash_point",
    "current_traceparent",
    "delete_keys",
    "fair_queues",
    "install",
    "installation_key",
    "is_admitted",
    "is_fair",
    "is_hint",
    "is_installed",
    "is_never_awaited",
    "is_routing",
    "may_log",
    "messages_left",
    "move_calls",
    "one_line",
    "owner_header",
    "refused_commands",
    "refuses_password",
    "route_calls",
    "trace_id_of",
    "untested_versions",
    "use_fair_transport",
    "waiting_messages",
]
