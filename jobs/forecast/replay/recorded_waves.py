"""The waves of recorded runs: each that was released in the span waits for those before it.

The time between two waves is as long as it was, with the wait for an approval. A wave that an
operator released before the others had ended begins when it did.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

from jobs.forecast.replay.load import Call
from jobs.forecast.replay.waves import Wave
from jobs.models import Rollout


class RecordedWaves:
    """The rollouts that have changed since a span began."""

    def __init__(self, since: datetime) -> None:
        self._since = since
        rows = Rollout.objects.filter(changed_at__gte=since)
        self._waves = {row.pk: row.waves[: row.wave] for row in rows}
        self._lasts = {
            key: [UUID(wave["last"]) for wave in waves] for key, waves in self._waves.items()
        }

    def number_of(self, submission_id: int | None, run_id: UUID) -> int:
        """Return the number of a run's wave, from 1; 0 for runs without waves."""
        lasts = self._lasts.get(submission_id or 0)
        return bisect_left(lasts, run_id) + 1 if lasts else 0

    def hold(self, calls: Sequence[Call]) -> dict[Wave, int]:
        """Let calls of later waves count their times from the release; return the gaps before."""
        found: dict[str, dict[int, list[Call]]] = defaultdict(lambda: defaultdict(list))
        for call in calls:
            if call.wave:
                found[call.submission][call.wave].append(call)
        gaps: dict[Wave, int] = {}
        for submission, of_waves in found.items():
            waves = self._waves[int(submission)]
            for before, number in pairwise(sorted(of_waves)):
                released = self._micros(waves[number - 1], "released_at")
                ends = [self._micros(wave, "ended_at") for wave in waves[:before]]
                known = [end for end in ends if end is not None]
                if released is None or len(known) < before or released < max(0, *known):
                    continue
                gaps[submission, number] = released - max(known)
                for call in of_waves[number]:
                    call.at = max(0, call.at - released)
                    call.start_by = call.start_by and call.start_by - released
        return gaps

    def _micros(self, wave: Mapping[str, Any], name: str) -> int | None:
        moment = wave.get(name)
        if moment is None:
            return None
        return (datetime.fromisoformat(moment) - self._since) // timedelta(microseconds=1)
