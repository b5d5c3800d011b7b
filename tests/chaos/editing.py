"""Edits jobs around their due times, and records the moments of each edit."""

import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any

import psycopg

from tests.chaos.world import Caller
from tests.flows.installation import Installation
from tests.flows.recurring import ZONES, job_of
from tests.judge.rows import Rule
from tests.judge.schedules import Case, Era, due_times

REASONS = frozenset({"paused"})
SOON = timedelta(seconds=3)
FAR = timedelta(days=1)
CRONS = ("* * * * *", "0-59 * * * *", "*/1 * * * *", "*/2 * * * *", "1-59/2 * * * *")
MARGIN = timedelta(seconds=0.2)
OPEN_SECONDS = 5.0
"""A transaction is open for so long at most, over a due time or two."""


@dataclass(frozen=True)
class Moments:
    """The facts of one edit: the answer of `tests.chaos.edits`, as times."""

    settled: datetime
    is_read: bool
    before: datetime
    after: datetime
    committed: datetime
    rule: Rule


class Editor:
    """Creates, edits, pauses and resumes jobs of its own until it is stopped."""

    def __init__(
        self, installation: Installation, *, name: str, jobs: int, ends_at: datetime, chance: Random
    ) -> None:
        self.done: Counter[str] = Counter()
        self._installation = installation
        self._keys = [f"{name}-{number}" for number in range(jobs)]
        self._ends_at = ends_at
        self._chance = chance
        self._eras: dict[str, list[Era]] = {}
        self._written_at: dict[str, datetime] = {}
        self._paused_until: dict[str, datetime] = {}
        self._marks = (f"{name}-{number}" for number in count())
        self._caller = Caller(installation)
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def cases(self) -> dict[str, Case]:
        """When the jobs were due, as far as that is known."""
        return {key: Case(eras, REASONS) for key, eras in self._eras.items()}

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Finish the edit under way and resume what is paused; fails when an edit has failed."""
        self._stop.set()
        self._thread.join(timeout=120)
        self.stop()
        assert self._failure is None, repr(self._failure)

    def stop(self) -> None:
        """End it as it stands."""
        self._stop.set()
        self._caller.kill()

    # --- the script ---------------------------------------------------------------------

    def _run(self) -> None:
        try:
            for key in self._keys:
                self._write(key, open_seconds=self._chance.uniform(0, 0.3))
            while not self._stop.is_set():
                key = self._chance.choice(self._keys)
                if key not in self._eras:
                    self._write(key, open_seconds=0)
                    continue
                if self._chance.random() < 0.99 and not self._is_near_due(key):
                    self._stop.wait(0.01)
                    continue
                self._act(key)
                self._stop.wait(self._chance.uniform(0, 1))
            for key in self._keys:
                if key in self._eras and self._is_paused(key):
                    self._pause(key, until=None, open_seconds=0)
        except BaseException as error:
            self._failure = error

    def _act(self, key: str) -> None:
        open_seconds = max(0.0, self._chance.uniform(-1, OPEN_SECONDS))
        if self._is_paused(key):
            self._pause(key, until=None, open_seconds=open_seconds)
            return
        match self._chance.choice(["write", "write", "pause", "pause for a while"]):
            case "write":
                self._write(key, open_seconds=open_seconds)
            case "pause":
                self._pause(key, until=datetime.now(UTC) + FAR, open_seconds=open_seconds)
            case _:
                seconds = open_seconds + self._chance.uniform(5, 40)
                until = datetime.now(UTC) + timedelta(seconds=seconds)
                self._pause(key, until=until, open_seconds=open_seconds)

    def _is_near_due(self, key: str) -> bool:
        """Wait until shortly before the job's next due time, if there is one soon."""
        now = datetime.now(UTC)
        soon = due_times(self._eras[key][-1].rule, start=now, end=now + SOON)
        if soon:
            left = (soon[0] - now).total_seconds()
            self._stop.wait(max(0.0, left - self._chance.uniform(0, 2)))
        return bool(soon)

    def _is_paused(self, key: str) -> bool:
        """Tell whether a job is paused: its schedule is not edited then."""
        until = self._paused_until.get(key)
        return until is not None and datetime.now(UTC) < until + MARGIN

    def _job(self, key: str) -> dict[str, Any]:
        """Return the job with another schedule, or the same in another zone: both begin anew."""
        number = self._keys.index(key)
        common = {"misfire": "all", "misfire_cap": 100_000, "end_at": self._ends_at.isoformat()}
        zone = self._chance.choice(ZONES)
        if number % 2:
            return job_of(key, cron=self._chance.choice(CRONS), zone=zone, **common)
        # Mostly the same minutes, and so the same place: due soon again, by the new schedule.
        minutes = self._chance.choice([1, 1, 1, 1, 1, 1, 2, 3])
        return job_of(key, interval_minutes=minutes, zone=zone, **common)

    # --- edits, and what they mean ------------------------------------------------------

    def _write(self, key: str, *, open_seconds: float) -> None:
        moments = self._edit(key, job=self._job(key), open_seconds=open_seconds)
        if moments is None:
            return
        self.done["created" if key not in self._eras else "edited"] += 1
        self._close(key, moments)
        self._written_at[key] = moments.before
        self._open(key, moments, begins=moments.before, sure_from=moments.after)

    def _pause(self, key: str, *, until: datetime | None, open_seconds: float) -> None:
        said = until.isoformat() if until else None
        moments = self._edit(key, paused_until=said, open_seconds=open_seconds)
        if moments is None:
            return
        self.done["paused" if until else "resumed"] += 1
        if until is None:
            self._resume(key, moments)
            return
        self._paused_until[key] = until
        self._close(key, moments)
        self._open(key, moments, begins=moments.before, sure_from=moments.committed, pause=until)
        if until < self._ends_at:
            self._open(key, moments, begins=until, sure_from=until)

    def _resume(self, key: str, moments: Moments) -> None:
        until = self._paused_until.pop(key)
        # It may have ended by itself before.
        after = min(moments.after, until)
        for index, era in enumerate(self._eras[key]):
            if era.is_paused and era.ends >= min(until, self._ends_at):
                sure = min(moments.before, until)
                self._eras[key][index] = replace(era, sure_until=sure, ends=after)
        self._written_at[key] = moments.before
        self._eras[key] = [era for era in self._eras[key] if era.begins != until]
        self._open(key, moments, begins=min(moments.before, until), sure_from=after)

    def _close(self, key: str, moments: Moments) -> None:
        """End the era before: due times that were not settled by then may be lost."""
        for index, era in enumerate(self._eras.get(key, [])):
            is_read = moments.is_read or era.begins < self._written_at[key]
            settled = moments.settled if is_read else min(moments.settled, era.sure_from)
            self._eras[key][index] = replace(
                era, sure_until=min(era.sure_until, settled), ends=min(era.ends, moments.committed)
            )

    def _open(
        self,
        key: str,
        moments: Moments,
        *,
        begins: datetime,
        sure_from: datetime,
        pause: datetime | None = None,
    ) -> None:
        end = min(pause, self._ends_at) if pause else self._ends_at
        era = Era(
            rule=moments.rule,
            begins=begins,
            sure_from=sure_from,
            sure_until=end,
            ends=end,
            is_paused=pause is not None,
        )
        self._eras.setdefault(key, []).append(era)

    def _edit(self, key: str, **facts: Any) -> Moments | None:
        """Have the edit made; return its moments, or None when nothing of it was committed."""
        mark = next(self._marks)
        said = self._caller.ask("edit", key=key, mark=mark, **facts)
        if "unknown" in said:
            self.done["broken off"] += 1
            if not self._is_marked(key, mark):
                return None
            said["committed"] = datetime.now(UTC).isoformat()
        times = {name: _time(said[name]) for name in ("settled", "before", "after", "committed")}
        moments = Moments(is_read=said["is_read"], rule=_rule(said["rule"]), **times)
        passed = due_times(moments.rule, start=moments.after, end=moments.committed)
        self.done["due times passed in an open transaction"] += len(passed)
        return moments

    def _is_marked(self, key: str, mark: str) -> bool:
        """Say whether an edit was committed, when PostgreSQL is back."""
        query = f"SELECT labels ->> 'mark' FROM jobs_job WHERE key = '{key}'"
        while True:
            try:
                return self._installation.servers.sql(query) == [(mark,)]
            except psycopg.OperationalError:
                time.sleep(0.2)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _rule(values: list[Any]) -> Rule:
    schedule, minutes, phase, shard, cron, zone, *times = values
    once_at, start_at, end_at = (_time(text) if text else None for text in times)
    return Rule(
        schedule=schedule,
        interval_minutes=minutes,
        phase=phase,
        shard=shard,
        cron=cron,
        zone=zone,
        once_at=once_at,
        start_at=start_at,
        end_at=end_at,
    )
