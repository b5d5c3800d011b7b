"""The policy that a run carries, completed by the settings. Decides on the next attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobs.core.conf import setting
from jobs.runs.retry_policy import LOST, RetryPolicy, gives_up, retry_delay


def delay_after(
    policy: Mapping[str, Any], attempt: int, names: Sequence[str], wanted: float | None
) -> float | None:
    """Return the seconds until the next attempt of a run, or None when it has failed for good.

    `policy` is what the run's row holds, with its `max_attempts`; `names` are those of the
    error's classes; `wanted` is a delay that the task asked for.
    """
    complete = RetryPolicy(
        max_attempts=policy["max_attempts"],
        backoff_seconds=policy.get("backoff_seconds", setting("BACKOFF_SECONDS")),
        backoff_cap_seconds=policy.get("backoff_cap_seconds", setting("BACKOFF_CAP_SECONDS")),
        retry_on=tuple(policy.get("retry_on", ())),
        give_up_on=tuple(policy.get("give_up_on", ())),
    )
    return retry_delay(complete, attempt=attempt, names=names, wanted=wanted)


def is_last(policy: Mapping[str, Any], attempt: int) -> bool:
    """Say whether a run has failed for good when this attempt's worker is lost."""
    give_up_on = policy.get("give_up_on", ())
    return gives_up(
        attempt=attempt, max_attempts=policy["max_attempts"], give_up_on=give_up_on, names=(LOST,)
    )
