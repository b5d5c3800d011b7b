"""Faults between machines, each as a block, and what was measured of it."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from tests.machines.installation import BEATS, FAR, WORKERS, Installation
from tests.proxy import NONE, Faults
from tests.waiting import wait_for

LEASE: Final = 30.0
HEARTBEAT: Final = 10.0
FRESH_SECONDS: Final = 2.0
"""The most by which a heartbeat of a healthy worker is late."""
SWEEP: Final = 2.0
"""Seconds, as shipped."""
CUT_SECONDS: Final = 45.0
"""Longer than a lease, a sweep and the rescue."""
SLOW_SECONDS: Final = 30.0
PROMOTED_AFTER_SECONDS: Final = 3.0
FAILOVER_SECONDS: Final = 60.0
"""From the loss of both servers until rescue runs again. The connections of beat, of the system
worker and of its processes are silent until their timeouts of up to 18 s, one after the other."""
SLOW: Final = Faults(delay_seconds=0.1, jitter_seconds=0.05)
LOST_PERCENT: Final = 5
AGE: Final = """
SELECT extract(epoch FROM clock_timestamp() - heartbeat_at)::float8 FROM jobs_worker
WHERE hostname LIKE %s || '@%%' ORDER BY started_at DESC LIMIT 1
"""
HOLDER: Final = "SELECT holder FROM jobs_leader WHERE until > clock_timestamp()"
LOST: Final = """
SELECT coalesce(json_agg(json_build_array(
    a.run_id, a.token, extract(epoch FROM a.ended_at - %s)::float8)), '[]')
FROM jobs_attempt a JOIN jobs_worker w ON w.id = a.worker_id
WHERE a.outcome = 'worker lost' AND w.hostname LIKE %s || '@%%'
  AND a.ended_at BETWEEN %s AND %s + make_interval(secs => %s)
"""


@dataclass
class Record:
    """One fault: when it began and ended by the monotonic clock, and its figures in seconds."""

    name: str
    victim: str
    began: float
    began_at: datetime
    pid: int | None = None
    is_failover: bool = False
    healed: float = 0.0
    lease_ends: float | None = None
    """When the lease of a worker ended that could not renew it; None for other faults."""
    figures: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        said = ", ".join(
            f"{name} {value:.1f}" if isinstance(value, float) else f"{name} {value}"
            for name, value in self.figures.items()
        )
        lasted = f"{self.healed - self.began:.0f} s" if self.healed else "not over"
        return f"{self.name} ({self.victim}, {lasted}): {said}"


Fault = Callable[["Hand", str], AbstractContextManager[Record]]
"""A method of `Hand`, with the name of its victim."""


class Hand:
    """The hand that breaks things."""

    def __init__(self, installation: Installation) -> None:
        self.at = installation
        self.records: list[Record] = []
        machines = installation.machines
        self._caches = [machines[name] for name in ("cache1", "cache2", "web")]
        self._databases = [machines[name] for name in ("db1", "db2")]

    def last(self, seconds: float) -> None:
        """Let a fault last, while supervisors do their work: the time is the fault."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.at.watch()
            time.sleep(min(0.3, left))

    # --- workers -----------------------------------------------------------------------

    def from_redis(self, victim: str) -> AbstractContextManager[Record]:
        """Cut a worker from both Redis and all Sentinels. PostgreSQL still hears of it."""
        machine = self.at.machines[victim]
        cut = lambda: machine.cut(*self._caches)  # noqa: E731
        return self._cut("cut from Redis", victim, cut, has_lease=True)

    def from_postgres(self, victim: str) -> AbstractContextManager[Record]:
        machine = self.at.machines[victim]
        cut = lambda: machine.cut(*self._databases)  # noqa: E731
        return self._cut("cut from PostgreSQL", victim, cut)

    def from_both(self, victim: str) -> AbstractContextManager[Record]:
        return self._cut("cut from both", victim, self.at.machines[victim].cut)

    def hears_nothing(self, victim: str) -> AbstractContextManager[Record]:
        """Drop what comes to a worker: what it sends arrives."""
        cut = lambda: self.at.machines[victim].cut(way="in")  # noqa: E731
        return self._cut("hears nothing", victim, cut)

    def says_nothing(self, victim: str) -> AbstractContextManager[Record]:
        """Drop what a worker sends: what others send arrives."""
        cut = lambda: self.at.machines[victim].cut(way="out")  # noqa: E731
        return self._cut("says nothing", victim, cut)

    @contextmanager
    def _cut(
        self, name: str, victim: str, cut: Callable[[], None], *, has_lease: bool = False
    ) -> Iterator[Record]:
        record = self._begin(name, victim)
        assert record.pid is not None, f"{victim} is down"
        self.at.tasks.disturb(record.pid, how="frozen")
        cut()
        yield record
        if not has_lease:
            record.lease_ends = self._lease_ends(victim)
        # From here on nothing excuses a second body.
        self._heal(record)
        self.at.machines[victim].heal()
        self.at.tasks.disturb(record.pid, how="thawed")

    @contextmanager
    def vanishes(self, victim: str) -> Iterator[Record]:
        """A worker's machine loses its link and all it had; afterwards it boots."""
        record = self._begin("machine vanishes", victim)
        assert record.pid is not None, f"{victim} is down"
        self.at.tasks.disturb(record.pid, how="killed")
        self.at.machines[victim].vanish()
        yield record
        record.lease_ends = self._lease_ends(victim)
        self._heal(record)
        self.at.machines[victim].boot()
        self.at.boot(victim)

    @contextmanager
    def loses_packets(self, victim: str) -> Iterator[Record]:
        record = self._begin(f"{LOST_PERCENT} % of packets lost", victim)
        self.at.machines[victim].lose(LOST_PERCENT)
        yield record
        self.at.machines[victim].heal()
        self._heal(record)

    @contextmanager
    def is_slow(self, victim: str = FAR) -> Iterator[Record]:
        """Delay all replies of the servers to the worker behind proxies."""
        record = self._begin("replies 100 ms late, 50 ms either way", victim)
        for proxy in self.at.proxies:
            proxy.faults = SLOW
        yield record
        for proxy in self.at.proxies:
            proxy.faults = NONE
        self._heal(record)

    # --- the others --------------------------------------------------------------------

    @contextmanager
    def beat_from_all(self, victim: str = "") -> Iterator[Record]:
        """Cut the beat that leads from everything."""
        leading = str(self.at.ask(HOLDER) or "")
        pids = {str(self.at.pid(name)): name for name in BEATS}
        victim = next((name for pid, name in pids.items() if pid in leading), BEATS[0])
        record = self._begin("beat cut from everything", victim)
        self.at.machines[victim].cut()
        now = lambda: self.at.ask(HOLDER)  # noqa: E731
        wait_for(lambda: (now() or leading) != leading, seconds=60, what="the other to lead")
        record.figures["the other leads after"] = time.monotonic() - record.began
        yield record
        self.at.machines[victim].heal()
        self._heal(record)

    @contextmanager
    def redis_fails_over(self, victim: str = "") -> Iterator[Record]:
        """The machine of Redis's master vanishes; Sentinel chooses the replica."""
        old, new = self.at.caches if self.at.caches[0].is_master() else self.at.caches[::-1]
        record = self._begin("Redis fails over", old.machine.name, is_failover=True)
        old.machine.vanish()
        wait_for(new.is_master, seconds=90, what="the replica to be the master")
        record.figures["master after"] = time.monotonic() - record.began
        yield record
        self._heal(record)
        old.machine.boot()
        old.start(replica_of=new)
        self.at.start_sentinel(old.machine.name)

    @contextmanager
    def postgres_fails_over(self, victim: str = "") -> Iterator[Record]:
        """The machine of the primary vanishes for good; the standby is promoted."""
        old, new = self.at.databases
        record = self._begin("PostgreSQL fails over", old.machine.name, is_failover=True)
        old.machine.vanish()
        self.last(PROMOTED_AFTER_SECONDS)
        new.promote()
        self.at.primary = new
        record.figures["primary after"] = time.monotonic() - record.began
        yield record
        self._heal(record)

    # --- what was measured -------------------------------------------------------------

    def servers_back(self, record: Record) -> float:
        """Return when the servers that failed over during a fault serve rescue, in its seconds."""
        meanwhile = [
            other
            for other in self.records
            if other.is_failover and record.began <= other.healed and other.began <= record.healed
        ]
        return max(
            (other.began - record.began + FAILOVER_SECONDS for other in meanwhile), default=0
        )

    def _begin(self, name: str, victim: str, *, is_failover: bool = False) -> Record:
        if victim in WORKERS:
            # After its last fault it may still look for its servers.
            fresh = HEARTBEAT + FRESH_SECONDS
            wait_for(lambda: self._age(victim) < fresh, seconds=60, what=f"{victim} to be back")
        began_at = self.at.ask("SELECT clock_timestamp()")
        record = Record(
            *(name, victim, time.monotonic(), began_at),
            pid=self.at.pid(victim),
            is_failover=is_failover,
        )
        self.records.append(record)
        return record

    def _heal(self, record: Record) -> None:
        record.healed = time.monotonic()

    def _lease_ends(self, victim: str) -> float:
        """Return when the lease of a worker ends by its last heartbeat, monotonic."""
        return time.monotonic() - self._age(victim) + LEASE

    def _age(self, victim: str) -> float:
        """Return how many seconds ago a worker was last heard of."""
        age = self.at.ask(AGE, victim)
        assert isinstance(age, float)
        return age

    def measure(self, starts: list[Any]) -> None:
        """Add the figures that the log and the tables have, after the last run has ended."""
        for record in self.records:
            during = [s.monotonic for s in starts if record.began <= s.monotonic <= record.healed]
            record.figures["starts"] = len(during)
            moments = sorted([record.began, *during, record.healed])
            gaps = [after - before for before, after in pairwise(moments)]
            record.figures["longest without a start"] = max(gaps)
            if record.lease_ends is not None:
                self._measure_cut(record, starts)

    def _measure_cut(self, record: Record, starts: list[Any]) -> None:
        ends = record.lease_ends
        assert ends is not None
        own = [
            start.monotonic - record.began
            for start in starts
            if start.parent_pid == record.pid and record.began <= start.monotonic <= record.healed
        ]
        record.figures["its last start after"] = max(own, default=0.0)
        record.figures["its lease ended after"] = ends - record.began
        # Also what was found late, but nothing of the victim's next fault.
        later = [
            other.began - record.began
            for other in self.records
            if other.victim == record.victim and other.began > record.healed
        ]
        at, seconds = record.began_at, min(later, default=3600.0) + LEASE - HEARTBEAT
        lost = self.at.ask(LOST, at, record.victim, at, at, seconds)
        tokens = {run: token for run, token, _ in lost}  # type: ignore[attr-defined]
        again = [
            start.monotonic - record.began
            for start in starts
            if start.run in tokens and start.token == tokens[start.run] + 1
        ]
        record.figures["runs lost with it"] = len(tokens)
        record.figures["found after"] = max((late for *_, late in lost), default=0.0)  # type: ignore[attr-defined]
        record.figures["all begun elsewhere after"] = max(again, default=0.0)
