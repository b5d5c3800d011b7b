"""The processes of the demo: the whole stack, and the device server."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.urls import reverse

from config.demo.tasks import activate_ruleset
from config.demo.world import Login
from jobs.core.conf import setting
from jobs.management.stack.programs import (
    beat,
    flower,
    job_worker,
    notices_worker,
    system_worker,
    web,
)
from jobs.management.stack.stack import Program, Stack, free_port
from jobs.models import Worker

TAIL_LINES = 4


@dataclass(frozen=True, slots=True)
class Places:
    """The addresses and logs of the demo's processes."""

    site: str
    flower: str
    devices: str
    logs: Path

    @property
    def overview(self) -> str:
        return self.site + reverse("jobs:overview")

    @property
    def runs(self) -> str:
        return self.site + reverse("jobs:runs")

    @property
    def customers(self) -> Path:
        """The file with the customers' hours, for the device server."""
        return self.logs / "customers.json"

    def log_ends(self) -> Iterator[str]:
        """Yield the last lines of each process's log, under its name."""
        for log in sorted(self.logs.glob("*.log")):
            lines = log.read_bytes()[-8000:].decode(errors="replace").splitlines()
            yield "\n".join([f"{log}:", *(f"  {line}" for line in lines[-TAIL_LINES:])])


def choose_places(*, port: int, flower_port: int) -> Places:
    """Return addresses on this machine, with the given ports, or free ones if they are taken."""
    return Places(
        site=f"http://127.0.0.1:{free_port(port)}",
        flower=f"http://127.0.0.1:{free_port(flower_port)}",
        devices=f"http://127.0.0.1:{free_port(0)}",  # nobody types it
        logs=settings.STATE_DIR / "demo-logs",
    )


def make_stack(
    places: Places, *, login: Login, workers: int, slots: int, devices: int, lab_devices: int
) -> Stack:
    """Return the stack, not started yet; processes that die are restarted."""
    ours = {
        "FAIRSHIFT_TASKS": ",".join([*settings.CELERY_IMPORTS, activate_ruleset.__module__]),
        "FAIRSHIFT_DEMO_DEVICES_URL": places.devices,
        "FLOWER_URL": places.flower,
    }
    names = [f"demo-{number}" for number in range(1, workers + 1)]
    programs = [
        _device_server(places, devices=devices, lab_devices=lab_devices),
        web(port=_port(places.site), environment=ours),
        system_worker("demo-system", environment=ours),
        notices_worker("demo-notices", environment=ours),
        *(job_worker(name, slots=slots, environment=ours) for name in names),
        beat(environment=ours),
        flower(
            port=_port(places.flower),
            user=login.user,
            password=login.password,
            site_url=places.site,
            environment=ours,
        ),
    ]
    return Stack(programs, log_folder=places.logs, restart=True)


def live_workers() -> set[object]:
    """Return the ids of live workers of the jobs queue."""
    queue = setting("JOBS_QUEUE")
    return {worker.pk for worker in Worker.objects.alive() if queue in worker.queues}


def _device_server(places: Places, *, devices: int, lab_devices: int) -> Program:
    port = _port(places.devices)
    command = [sys.executable, "-m", "config.demo.device_server", f"--port={port}"]
    command += [f"--devices={devices}", f"--lab-devices={lab_devices}"]
    command += [f"--customers={places.customers}"]
    # Not by the port alone, which may be that of another demo.
    return Program("devices", command, ready_port=port, ready_text=f"devices at {places.devices}")


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
