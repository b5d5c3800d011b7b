"""What the verdict of the overview is made of: facts, and the problems that are found in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.calendars.reads.awaited import Awaited
from jobs.models import Job, Rollout
from jobs.owners.standing import Standing
from jobs.system.rollups.objectives import Objective
from jobs.system.state import SystemState


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the verdict depends on. Nothing of it is of owners that the visitor does not see."""

    system: SystemState
    system_queue: str
    is_redis_away: bool = False
    refuses_password: bool = False
    """Redis answers this process, and refuses its password; it is away then, too."""
    unserved: Sequence[str] = ()
    """Queues in which runs wait, or fair ones in which messages wait, without a worker."""
    unserved_stock: Sequence[str] = ()
    """Stock queues in which messages wait, without a worker of Fairshift."""
    undeclared: Sequence[str] = ()
    """Queues to which tasks are routed, that nothing declares, and without a worker."""
    unsent: str = ""
    """The queue of webhooks and mails, if some are asked for and no worker takes from it."""
    stopped: Sequence[str] = ()
    """Webhooks and mails that are off, as their makers may not see runs now; a few of them."""
    late_count: int = 0
    broken_count: int = 0
    unknown_task: tuple[str, str] | None = None
    """A task that no worker knows although runs of it wait, and its queue."""
    awaited: Awaited | None = None
    rollouts: Sequence[Rollout] = ()
    """Those that are stopped, or wait for an approval."""
    failing: Sequence[Job] = ()
    starved: Standing | None = None
    burning: Objective | None = None
    """The objective that burns fastest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong. `page`, `key` and `query` lead to the rows that it is about."""

    code: str
    text: str
    todo: str
    is_bad: bool = True
    """False: a warning."""
    page: str = "workers"
    """The name of an address: a list, or with `key` the page of a row. Empty: no page has it."""
    key: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)

    @property
    def level(self) -> str:
        """How bad it is, for machines."""
        return "broken" if self.is_bad else "degraded"
