"""The attributes that the parts of a channel share; Kombu's channel defines most of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from fleet.transport.leases import Leases
from fleet.transport.pending_take import PendingTake
from fleet.transport.quarantine import Quarantine


class ChannelPart:
    """The types of attributes that one part sets and another one reads."""

    # Kombu's.
    connection: Any
    client: Any
    qos: Any
    active_queues: list[str]
    conn_or_acquire: Callable[..., Any]
    connection_errors: tuple[type[Exception], ...]
    _in_poll: Any
    _in_listen: Any
    _closing: bool
    _brpop_sent_at: float | None
    # Options of the connection.
    fair_queues: Sequence[str] = ()
    lease_seconds: float = 30.0
    take_most: int = 256
    # Ours.
    leases: Leases
    holder: object
    quarantine: Quarantine
    active_fair_queues: Sequence[str] = ()
    """The fair queues that are consumed here; read in each turn of the loop."""
    _unacknowledged: frozenset[str] | set[str] = frozenset()
    """Queues whose consumer acknowledges nothing: a delivery settles the message."""
    _arrived: deque[tuple[str, str, bytes]]
    _in_turn: list[str]
    _waits: dict[str, float]
    """Queues that are empty for now, and the `monotonic()` time of the next look."""
    _pending_take: PendingTake | None = None
    _waits_for_fair = False
    _waits_for_stock = False
    _with_repair: Callable[..., Any]
    _repair: Callable[..., Any]
