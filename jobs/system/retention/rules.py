"""When a row leaves: the settings, and PostgreSQL's midnight, for all statements of a round.

An ended run stays for RUN_DAYS after its end, a failed one for FAILED_RUN_DAYS; its owner may have
other numbers. Days are counted to the midnight (UTC) before the round, so that the rows of a day
leave together, and a row stays up to a day longer. No run leaves before KEY_DAYS, while a submit
with its idempotency key may ask for it, or while its submission has open runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any
from uuid import UUID

from jobs.core import sql
from jobs.core.conf import setting
from jobs.core.ids import first_id_of
from jobs.core.states import ENDED, State

_OPEN_SUBMISSIONS = """
SELECT DISTINCT submission_id AS id FROM jobs_run
WHERE submission_id IS NOT NULL AND state = ANY(%s)
UNION SELECT submission_id FROM jobs_backfill WHERE done_at IS NULL
"""

_OWNERS = """
SELECT id, run_days, failed_run_days FROM jobs_owner
WHERE run_days IS NOT NULL OR failed_run_days IS NOT NULL ORDER BY id
"""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The numbers of one round. Days are whole; `midnight` is of today, in UTC."""

    midnight: datetime
    run_days: int
    failed_run_days: int
    attempt_days: int
    key_days: int
    open_submissions: tuple[int, ...]
    """Submissions with open runs, or whose backfill still makes runs."""

    @property
    def least_days(self) -> int:
        """Days after which a run of an owner without days of its own may leave."""
        return max(self.run_days, self.key_days)

    @property
    def first_id(self) -> UUID:
        """Runs with a lower id may leave, if their owner has no shorter days."""
        return first_id_of(self.before(self.least_days))

    @property
    def parameters(self) -> dict[str, Any]:
        """What `system/history_leaves.sql` and the statements with it need."""
        return {
            "midnight": self.midnight,
            "run_days": self.run_days,
            "failed_run_days": self.failed_run_days,
            "key_days": self.key_days,
            "attempts_before": self.before(self.attempt_days),
            "open_submissions": sql.array(self.open_submissions),
        }

    @property
    def digest(self) -> str:
        """A text that changes at midnight, and with the days of the settings and of owners."""
        days = (self.run_days, self.failed_run_days, self.attempt_days, self.key_days)
        owners = sql.query(_OWNERS)
        return sha256(repr((self.midnight, days, owners)).encode()).hexdigest()

    def before(self, days: int) -> datetime:
        """Return the midnight that many days ago."""
        return self.midnight - timedelta(days=days)


def rules_now() -> Rules:
    """Return the rules of this moment."""
    midnight = sql.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    states = sorted(state.value for state in State if state not in ENDED)
    return Rules(
        midnight=midnight,
        run_days=setting("RUN_DAYS"),
        failed_run_days=setting("FAILED_RUN_DAYS"),
        attempt_days=setting("ATTEMPT_DAYS"),
        key_days=setting("KEY_DAYS"),
        open_submissions=tuple(row["id"] for row in sql.query(_OPEN_SUBMISSIONS, [states])),
    )
