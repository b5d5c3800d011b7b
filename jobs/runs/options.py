"""The options of a submit, apart from the task's arguments: checked once, here. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, Final

from celery.canvas import Signature

from jobs.catalog.policies import CHECKS, checked_policy
from jobs.core.errors import OptionError
from jobs.core.inputs import KEY_LIMIT, LOCK_LIMIT, refuse_labels, refuse_naive, refuse_name

FARTHEST: Final = timedelta(days=366)

# The parts of a task's policy that a submit may override.
POLICY_OPTIONS: Final = frozenset(CHECKS) - {"priority", "deadline_seconds"}


JOB_POLICIES: Final = POLICY_OPTIONS - {"log_level"}
"""Those that the row of a job has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How one submit differs from the defaults. `None` and empty mean the task's own policy.

    `countdown` is seconds from now, `eta` an aware time; `deadline_seconds` counts from the due
    time. `lock` is scoped to the owner. `window="required"` refuses a run without a calendar, which
    may else start at any time. `link`, `link_error` and `ignore_result` are Celery's.
    """

    queue: str = ""
    priority: int | None = None
    countdown: float | None = None
    eta: datetime | None = None
    deadline_seconds: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    target: str = ""
    lock: str = ""
    idempotency_key: str | None = None
    window: str = ""
    max_attempts: int | None = None
    backoff_seconds: float | None = None
    backoff_cap_seconds: float | None = None
    retry_on: tuple[str, ...] | None = None
    give_up_on: tuple[str, ...] | None = None
    soft_time_limit_seconds: float | None = None
    time_limit_seconds: float | None = None
    log_level: str | None = None
    ignore_result: bool = True
    link: Signature | None = None
    link_error: Signature | None = None

    def __post_init__(self) -> None:
        given = {
            name: getattr(self, name) for name in CHECKS if getattr(self, name, None) is not None
        }
        checked_policy(given)
        refuse_name("queue", self.queue, most=100)
        refuse_name("target", self.target, most=200)
        refuse_name("lock", self.lock, most=LOCK_LIMIT)
        if self.idempotency_key is not None:
            refuse_name("idempotency_key", self.idempotency_key, most=KEY_LIMIT)
        if self.idempotency_key == "":
            # It would silently make a new run each time.
            raise OptionError("idempotency_key", "is empty; give a key, or leave it out")
        if self.window not in {"", "required"}:
            raise OptionError("window", "is 'required' or left out")
        refuse_labels(self.labels)
        _refuse_time(self.countdown, self.eta)
        if not isinstance(self.ignore_result, bool):
            raise OptionError("ignore_result", "is True or False")

    @property
    def policy(self) -> dict[str, Any]:
        """The policies that this submit sets, by name."""
        given = {name: getattr(self, name) for name in POLICY_OPTIONS}
        return dict(checked_policy({k: v for k, v in given.items() if v is not None}))


def own_policy(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policies that a job's row sets; an empty field means the task's own."""
    return {name: row[name] for name in JOB_POLICIES if row[name] not in (None, [])}


NAMES: Final = frozenset(item.name for item in fields(Options))


def _refuse_time(countdown: Any, eta: Any) -> None:
    if countdown is not None and eta is not None:
        raise OptionError("countdown", "and eta exclude each other")
    if countdown is not None and (
        isinstance(countdown, bool)
        or not isinstance(countdown, int | float)
        or not 0 <= countdown <= FARTHEST.total_seconds()
    ):
        raise OptionError("countdown", f"is 0 to {FARTHEST.total_seconds():.0f} seconds")
    if eta is not None:
        refuse_naive("eta", eta)


def refuse_far(eta: datetime, *, now: datetime, option: str = "eta") -> None:
    """Raise OptionError for a time more than a year from now, in either direction."""
    if abs(eta - now) > FARTHEST:
        raise OptionError(option, f"is at most {FARTHEST.days} days from now")
