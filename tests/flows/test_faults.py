"""Each fault of the table, made for real: what an operator who asks is told, and nothing false."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pytest

from tests.flows import faults
from tests.flows.breaking import hung, redis_with
from tests.flows.faults import World, codes, killed
from tests.flows.installation import installed
from tests.jobs.pages.metrics.scraping import parsed, value
from tests.proxy import Proxy
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

MINUTE: Final = 60.0
DISK_BYTES: Final = 2 * 2**30
DUE: Final = {"countdown": 1}
SOON: Final = {"countdown": 30}
"""Later than what the last pulse may promote."""
LATER: Final = {"statistics", "late", "unpublished"}
"""What is late after some minutes because the system worker or beat does nothing."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One row: the fault, and what is said of it within a minute."""

    made: Any
    codes: set[str] = field(default_factory=set)
    """Of the verdict, in `status` and the metrics."""
    also: set[str] = field(default_factory=set)
    """Effects of it that may be named before or beside."""
    status: str = "broken"
    findings: set[str] = field(default_factory=set)
    """What doctor finds; effects come beside."""
    alerts: set[str] = field(default_factory=set)
    """Those that fire if this lasts; no others."""
    also_alerts: set[str] = field(default_factory=set)
    """But for these, whose cause comes and goes."""
    why: str = ""
    """Part of what a run that waits says; empty: it is not asked."""
    run: Mapping[str, Any] = field(default_factory=dict)
    """Options of that run."""
    up: Mapping[str, int] = field(default_factory=dict)
    """Whether a part answers the scrape."""


FAULTS: Final = {
    "no worker": Fault(
        made=killed("worker"),
        codes={"unserved", "lost_worker"},
        findings={"D304", "D309"},
        alerts={"NoWorkers", "QueueStuck", "Problem"},
        why="No worker takes from queue 'jobs'.",
    ),
    "no worker of any queue": Fault(
        made=killed("worker", "system", "notices"),
        codes={"no_worker", "lost_worker"},
        also={"pulse", "unserved", "unsent", "system_worker", *LATER},
        findings={"D301", "D309"},
        alerts={"NoWorkers", "QueueStuck", "SystemWorkerSilent", "Problem"},
        why="No worker takes from queue 'jobs'.",
    ),
    "a deaf worker": Fault(
        made=faults.deaf_worker,
        codes={"without_redis", "unserved"},
        findings={"D317", "D304"},
        alerts={"NoWorkers", "QueueStuck", "Problem"},
        why="cannot use Redis",
    ),
    "no system worker": Fault(
        made=killed("system"),
        codes={"system_worker", "lost_worker"},
        also={"pulse", *LATER},
        findings={"D303", "D309"},
        alerts={"SystemWorkerSilent", "Problem"},
        why="No worker takes from queue 'system', so nothing promotes it.",
        run=DUE,
    ),
    "no beat": Fault(
        made=killed("beat"),
        codes={"beat"},
        also={"pulse", *LATER},
        findings={"D302"},
        alerts={"BeatSilent"},
        why="beat does not run",
        run=SOON,
    ),
    "a missing PeriodicTask": Fault(
        made=faults.missing_task,
        codes={"missing_rounds"},
        findings={"D315"},
        alerts={"Problem"},
    ),
    "no notices worker": Fault(
        made=killed("notices"),
        codes={"unsent", "lost_worker"},
        findings={"D312", "D309"},
        alerts={"Problem"},
    ),
    "a plain queue without a worker": Fault(
        made=faults.plain_message,
        codes={"unserved_stock"},
        status="degraded",
        findings={"D316"},
        alerts={"Problem"},
    ),
    "an old transaction": Fault(
        made=faults.old_transaction,
        codes={"old_transaction"},
        also={"statistics"},
        status="degraded",
        findings={"D106"},
        alerts={"Problem"},
    ),
    "a paused owner": Fault(
        made=faults.paused_owner,
        status="healthy",
        why="Owner acme is paused: stocktaking",
    ),
    "a slow machine": Fault(made=faults.slow_machine, status="healthy"),
    "a refused password": Fault(
        made=faults.changed_password,
        codes={"redis_password"},
        also={"redis", "pulse", "beat", "unpublished", *LATER},
        findings={"E206"},
        alerts={"ServerAway"},
        why="Redis refuses the password",
        up={"redis": 0, "postgresql": 1},
    ),
    "a Redis that hangs": Fault(
        made=partial(faults.broken, how=hung("redis")),
        codes={"redis"},
        also={"pulse", "beat", "unpublished", *LATER},
        findings={"E201"},
        alerts={"ServerAway"},
        why="Redis does not answer",
        up={"redis": 0, "postgresql": 1},
    ),
    "a full Redis": Fault(
        made=partial(faults.broken, how=redis_with("maxmemory", "1")),
        codes={"without_redis", "unpublished"},
        # Workers notice it one after the other.
        also={"pulse", "beat", "system_worker", "unserved", "unsent", *LATER},
        findings={"D204", "D306", "D317"},
        alerts={"NoWorkers", "UnpublishedRuns", "Problem"},
        # The system worker may notice it after this scrape. A beat that cannot send gives its
        # lead up, and takes it again.
        also_alerts={"BeatSilent", "SystemWorkerSilent"},
        why="cannot use Redis",
        up={"redis": 1, "postgresql": 1},
    ),
    "a PostgreSQL that hangs": Fault(
        made=partial(faults.broken, how=hung("postgres")),
        status="unreadable",
        findings={"E102"},
        alerts={"ServerAway"},
        up={"redis": 1, "postgresql": 0},
    ),
    "a full disk of PostgreSQL": Fault(
        made=faults.full_disk,
        status="healthy",
        findings={"D401"},
    ),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A sound installation with the shipped settings."""
    folder = tmp_path_factory.mktemp("faults")
    with (
        installed(folder, runs=False, shipped=True, disk_bytes=DISK_BYTES) as here,
        Proxy(here.servers.redis.url) as proxy,
    ):
        world = World(here, proxy, folder)
        try:
            yield faults.begun(world)
        finally:
            world.close()


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_within_a_minute_and_nothing_else(world: World, name: str) -> None:
    """By the verdict, `status`, doctor, the metrics, the alerts and the run that waits for it.

    While it lasts no scrape has another problem; when it is over, the run ends, and all is well.
    """
    fault, run = FAULTS[name], ""
    if name == "a full disk of PostgreSQL" and not world.here.servers.has_own_disk:
        pytest.skip("only root may mount a disk")
    seen = set[str]()

    world.healed()

    def scraped() -> bool:
        """Say whether a scrape names the fault."""
        scrape = parsed(world.scrape())
        found = codes(scrape)
        seen.update(found)
        is_up = all(value(scrape, "up", part=part) == up for part, up in fault.up.items())
        return is_up and fault.codes <= found

    with fault.made(world):
        if fault.why:
            run = world.submit(**fault.run)
        wait_for(scraped, seconds=MINUTE, every=1, what=f"{name} in the metrics")
        # Not that scrape: between its parts a lease may have ended.
        text = world.scrape()
        if run:
            wait_for(
                lambda: fault.why in world.why(run), seconds=MINUTE, every=1, what=world.why(run)
            )
        told = world.command("status")
        assert told["status"] == fault.status, told
        found = {one["code"] for one in told.get("problems", ())}
        assert fault.codes <= found <= fault.codes | fault.also, told["problems"]
        assert fault.findings <= world.findings()
        faults.assert_alerts(text, fault.alerts, also=fault.also_alerts, folder=world.folder)
        assert seen <= fault.codes | fault.also
    if run:
        wait_for(lambda: world.state(run) == "succeeded", seconds=MINUTE, every=1, what="the run")
    world.healed()
