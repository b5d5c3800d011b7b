"""Beats over servers of a scene's own, and a recorder of what they send."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import redis

from fleet.beat.due import send_id
from fleet.beat.scheduler import LEASE_SECONDS, RENEW_SECONDS
from jobs.management.stack.programs import beat
from tests.flows.installation import Installation, installed
from tests.flows.processes import Process
from tests.waiting import wait_for

QUEUE = "heard"
ANCHOR = datetime(2026, 1, 1, tzinfo=UTC)
"""The entries' schedules count from here, so that their due times are known."""

ENTRIES = f"""
from datetime import datetime, UTC
from django_celery_beat.models import IntervalSchedule, PeriodicTask

one = IntervalSchedule.objects.create(every=1, period="seconds")
day = IntervalSchedule.objects.create(every=1, period="days")
made = lambda name, **facts: PeriodicTask.objects.create(name=name, task="heard." + name, **facts)
made("second", interval=one, queue="{QUEUE}")
for name, queue in (("late", "{QUEUE}"), ("stock", "{QUEUE}"), ("fair", "jobs")):
    made(name, interval=day, queue=queue, one_off=True, enabled=False)
PeriodicTask.objects.update(last_run_at=datetime.fromisoformat("{ANCHOR.isoformat()}"))
"""
HOLDER = "SELECT holder FROM jobs_leader WHERE until > clock_timestamp()"


@dataclass(frozen=True, slots=True)
class Heard:
    """One message that was sent: its entry, its id, and when it arrived."""

    name: str
    task_id: str
    at: float


class Ear:
    """Takes every message from a stock queue, and records it."""

    def __init__(self, client: redis.Redis) -> None:
        self.heard: list[Heard] = []
        self._client = client
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while not self._ends.is_set():
            try:
                found = self._client.blpop([QUEUE], timeout=0.2)
            except redis.RedisError:
                time.sleep(0.05)
                continue
            if found:
                headers = json.loads(found[1])["headers"]
                name = headers["task"].removeprefix("heard.")
                self.heard.append(Heard(name, headers["id"], time.monotonic()))

    def of(self, name: str, *, since: float = 0.0) -> list[Heard]:
        """Return the messages of an entry."""
        return [heard for heard in self.heard if heard.name == name and heard.at >= since]

    def counts(self, name: str) -> Counter[str]:
        """Return how often each id of an entry arrived."""
        return Counter(heard.task_id for heard in self.of(name))

    def close(self) -> None:
        self._ends.set()
        self._thread.join()


class Beats:
    """Numbered beats; which of them leads, and what they sent."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.servers = installation.servers
        installation.run(ENTRIES)
        self.ear = Ear(self.servers.client())
        self.running: list[Process] = []

    def start(self) -> Process:
        """Start one beat more; return when it has begun."""
        process = self.installation.start(beat())
        self.running.append(process)
        process.ready()
        return process

    def end_at(self, point: str) -> None:
        """Start one that dies at a point of its way, perhaps before it is ready."""
        victim = self.installation.start(beat(), FAULT=point)
        wait_for(lambda: not victim.is_alive, what=f"the death at {point}")

    def leader(self) -> Process:
        """Wait for a beat that leads, and return it."""
        return wait_for(self._leader, what="a beat that leads")

    def lease_wears_on(self) -> None:
        """Wait until the leader is about to renew its lease: a leader that dies now loses it."""
        left = "SELECT extract(epoch FROM until - clock_timestamp()) FROM jobs_leader"
        bound = LEASE_SECONDS - 0.75 * RENEW_SECONDS

        def is_worn() -> bool:
            [(seconds,)] = self.servers.sql(left)
            return float(str(seconds)) < bound

        wait_for(is_worn, what="an old lease")

    def two(self) -> tuple[Process, Process]:
        """Return the leader, which has just sent something, and one that stands by."""
        self.running = [process for process in self.running if process.is_alive]
        while len(self.running) < 2:
            self.start()
        leader = self.leader()
        self.hear("second")
        [other] = [process for process in self.running if process is not leader]
        wait_for(lambda: "stands by" in other.log.read_text(), what="the other one's word")
        return leader, other

    def hear(self, name: str, *, seconds: float = 15) -> float:
        """Wait for a send of an entry from now on; return how many seconds that took."""
        began_at = time.monotonic()
        found = wait_for(lambda: self.ear.of(name, since=began_at), seconds=seconds, what=name)
        return found[0].at - began_at

    def nominal_ids(self) -> set[str]:
        """Return the ids of all due times of `second`, from an hour ago to some seconds ahead."""
        seconds = int((datetime.now(tz=ANCHOR.tzinfo) - ANCHOR).total_seconds())
        due = range(seconds - 3600, seconds + 5)
        return {send_id("second", ANCHOR + timedelta(seconds=number)) for number in due}

    def doubled(self, name: str) -> set[str]:
        """Return the ids of an entry that arrived more than once."""
        return {task_id for task_id, count in self.ear.counts(name).items() if count > 1}

    def end_lease(self) -> None:
        """Let the lease of a beat that is dead end now: a scene that is not about it is shorter."""
        self.servers.sql("UPDATE jobs_leader SET until = clock_timestamp()")

    @contextmanager
    def only(self, name: str, *, due_at: datetime) -> Iterator[None]:
        """Run no beat, and enable only this entry, which came due before."""
        for process in self.running:
            process.stop()
        entries = "UPDATE django_celery_beat_periodictask SET enabled = "
        last_at = (due_at - timedelta(days=1)).isoformat()
        self.servers.sql(f"{entries} (name = '{name}')")
        self.servers.sql(f"{entries} true, last_run_at = '{last_at}' WHERE name = '{name}'")
        yield
        self.servers.sql(f"{entries} (name NOT IN ('late', 'stock', 'fair'))")

    def row(self, name: str) -> tuple[object, ...]:
        """Return whether an entry is on, and its count of runs."""
        [row] = self.servers.sql(
            "SELECT enabled, total_run_count FROM django_celery_beat_periodictask"
            f" WHERE name = '{name}'"
        )
        return row

    def _leader(self) -> Process | None:
        return led_by(self.servers.sql(HOLDER), self.running)


def led_by(rows: Iterable[tuple[object, ...]], beats: Iterable[Process]) -> Process | None:
    """Return which of these beats holds the lease, by the rows that HOLDER gives."""
    pids = {int(str(holder).split(":")[1]) for (holder,) in rows}
    return next((one for one in beats if one.is_alive and one.pid in pids), None)


@contextmanager
def beats(folder: Path) -> Iterator[Beats]:
    """An installation without workers; afterwards nothing of it is left."""
    with installed(folder, runs=False) as installation:
        made = Beats(installation)
        try:
            yield made
        finally:
            with suppress(redis.RedisError):
                made.ear.close()
            installation.stop()
