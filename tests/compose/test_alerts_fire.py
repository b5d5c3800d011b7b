"""Alerts fire in real faults: a real Prometheus, web process, worker, beat and servers.

`tests/flows/test_faults.py` has the faults of workers, servers, beat and the system worker.

Times of the rules are a twentieth of the shipped ones (`tests/compose/alarm.py`), as are the lease
and the heartbeat of workers (`QUICK`). One installation, and its faults in a row: the slow ones
begin first, and the quick ones are made meanwhile.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from jobs.management.stack import programs
from jobs.management.stack.stack import free_port
from jobs.system.rollups.objectives import LEAST_STARTS
from tests.compose.alarm import Alarm, shipped_alerts, watching
from tests.few_partitions import KEPT_DAYS, LATER
from tests.flows.installation import Installation, installed
from tests.flows.processes import Process
from tests.flows.test_faults import FAULTS
from tests.flows.web import Site
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

SET_UP = """
from jobs.models import Owner
from jobs.owners.registry import change_owner
from jobs.owners.tokens import make_token
change_owner(Owner.objects.get(slug="globex"), wait_objective_seconds=5)
for scopes in (["read"], ["read", "submit"]):
    print("token", make_token("play", scopes=scopes).secret)
"""
MAKE_JOB = """
from datetime import timedelta
from jobs import upsert_jobs
from jobs.core.sql import now
upsert_jobs("acme", [{
    "key": "soon", "task": "tests.record", "arguments": {"n": 1}, "misfire": "skip",
    "once_at": now() + timedelta(seconds=1),
}])
"""
STOP_ROLLOUT = """
from jobs import Waves, submit_many
waves = Waves(sizes=[1, "100%"], stop_at=0)
submit_many("tests.fail", [{"times": 1}] * 2, owner="acme", max_attempts=1, waves=waves)
"""
CANCEL_ROLLOUT = """
from jobs.models import Submission
Submission.objects.get(rollout__state="stopped").cancel()
"""
CANCEL_RUNNING = """
from jobs.models import Run
for run in Run.objects.filter(state="running"):
    run.cancel()
"""
GRACE = 10
"""Seconds after which a due time is missed; the least that the setting allows."""
RUNNING = "SELECT count(*) FROM jobs_run WHERE state = 'running'"
OPEN = "SELECT count(*) FROM jobs_run WHERE ended_at IS NULL"
MISSED = "SELECT count(*) FROM jobs_missed"
DUE = "SELECT count(*) FROM jobs_job WHERE key = 'soon' AND once_at < clock_timestamp()"
LATE_SECONDS = 150
"""Until the statistics are 75 s late, which is the slowest of the faults side by side."""
MINUTE_SECONDS = 110
"""A minute, the time until it is final, and a scrape."""


@dataclass
class Play:
    """The installation, what watches it, and the processes that are broken."""

    installation: Installation
    alarm: Alarm
    beat: Process
    system: Process
    web: Process
    site: Site

    def submit(self, owner: str, task: str, count: int, **arguments: Any) -> None:
        """Submit runs over the API."""
        body = {"owner": owner, "task": task, "arguments": [arguments] * count, "max_attempts": 1}
        answer = self.site.send("POST", "/submissions", body)
        assert answer.status in (201, 202), answer.body

    def count(self, query: str, *, is_: int, seconds: float = 30) -> None:
        """Wait until a query answers a number."""
        wait_for(lambda: self.installation.count(query) == is_, seconds=seconds, what=query)


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    """A sound installation, scraped by Prometheus."""
    folder = tmp_path_factory.mktemp("alerts")
    with installed(folder, runs=False) as here:
        lines = here.run(SET_UP).splitlines()
        reading, submitting = (line.split()[1] for line in lines if line.startswith("token "))
        port = free_port(0)
        grace = {"FAIRSHIFT_MISFIRE_GRACE_SECONDS": str(GRACE)}
        web = here.start(
            programs.web(port=port, processes=1),
            ALLOWED_HOSTS="127.0.0.1",
            FAIRSHIFT_OFFERED_TASKS="tests.*",
        )
        system = here.start_system(**grace)
        beat = here.start_beat(**grace)
        worker = here.start_worker()
        for process in (web, system, beat, worker):
            process.ready(seconds=60)
        with watching(f"127.0.0.1:{port}", token=reading, folder=folder / "prom") as alarm:
            yield Play(
                *(here, alarm, beat, system, web),
                site=Site(f"http://127.0.0.1:{port}", submitting),
            )
        here.stop()


def test_a_sound_installation_is_scraped(play: Play) -> None:
    """With the token, and no alert of a fault fires."""
    play.submit("acme", "tests.record", 3, n=1)
    play.count(OPEN, is_=0)
    scraped = "count_over_time(fairshift_info[1m])"
    wait_for(lambda: (play.alarm.value(scraped) or 0) >= 5, seconds=30, what="scrapes")
    assert play.alarm.firing() == set()


def test_a_rollout_stops(play: Play) -> None:
    """The only run of its first wave fails."""
    play.installation.run(STOP_ROLLOUT)
    play.alarm.fires("RolloutStopped", seconds=60)
    play.installation.run(CANCEL_ROLLOUT)
    play.alarm.end("RolloutStopped", seconds=60)


def test_a_message_is_malformed(play: Play) -> None:
    """The worker puts it into quarantine, and works on."""
    with play.installation.servers.client() as redis:
        redis.lpush("jobs", b"\xff no message")
    play.alarm.fires("QuarantineGrowing", seconds=30)


def test_the_work_of_the_system_worker_is_late(play: Play) -> None:
    """It and beat are away for a minute, a job becomes due, and partitions are lost.

    Runs wait, since long ones of another owner have all slots.
    """
    play.system.kill()
    play.beat.kill()
    play.installation.run(MAKE_JOB)
    for [name] in play.installation.servers.sql(LATER.format(after_days=KEPT_DAYS)):
        play.installation.servers.sql(f"DROP TABLE {name}")
    play.submit("acme", "tests.fail", 8, times=1)
    play.submit("acme", "tests.sleep", 2, seconds=4)
    play.count(OPEN, is_=0)
    play.submit("acme", "tests.sleep", 2, seconds=600)
    play.count(RUNNING, is_=2)
    play.submit("globex", "tests.record", LEAST_STARTS + 2, n=1)
    play.alarm.fires(
        *("SchedulesLate", "OldestWait", "StatisticsLate", "PartitionsMissing"),
        seconds=LATE_SECONDS,
    )
    # Due times are whole minutes.
    play.count(f"{DUE} - interval '{GRACE + 2} s'", is_=1, seconds=90)


def test_what_is_counted_when_its_minute_is_final(play: Play) -> None:
    """Failures, late starts, and a missed due time, after beat and the system worker are back."""
    grace = {"FAIRSHIFT_MISFIRE_GRACE_SECONDS": str(GRACE)}
    back = [play.installation.start_system(**grace), play.installation.start_beat(**grace)]
    for process in back:
        process.ready(seconds=60)
    play.count(MISSED, is_=1, seconds=30)
    play.alarm.fires("FailureRatio", "Misfires", "OwnerStarving", seconds=MINUTE_SECONDS)
    play.installation.run(CANCEL_RUNNING)
    play.alarm.fires("ObjectiveBurnsSlowly", "ObjectiveBurnsFast", seconds=MINUTE_SECONDS)


def test_nothing_is_scraped(play: Play) -> None:
    """The only web process is killed. With those of test_faults, each shipped alert has fired."""
    play.web.kill()
    play.alarm.fires("NotScraped", seconds=60)
    fired = {name.split()[0] for name in play.alarm.fired}
    assert fired.union(*(fault.alerts for fault in FAULTS.values())) == shipped_alerts()
