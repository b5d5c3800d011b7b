"""The demo's task against real devices, outside of any worker."""

import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from urllib3.exceptions import HTTPError, ReadTimeoutError

from config.demo import tasks
from config.demo.agreed_hours import AGREED, REFUSING, Customer, write_customers
from config.demo.devices import PLANNED_FAILURES
from tests.config.demo.conftest import RunningServer

Start = Callable[..., RunningServer]


@pytest.fixture
def devices(start_server: Start, settings: Any) -> Callable[..., RunningServer]:
    """Start devices that the task of this process will talk to."""

    def start(*options: str) -> RunningServer:
        server = start_server("--lab-devices", "0", *options)
        settings.DEMO_DEVICES_URL = f"http://127.0.0.1:{server.port}"
        return server

    return start


def report(server: RunningServer) -> dict[str, Any]:
    connection = server.connect()
    connection.request("GET", "/report?version=42")
    return dict(json.loads(connection.getresponse().read()))


def test_it_raises_on_each_failure_and_works_when_tried_again(
    devices: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal, a lost connection and a late answer are errors; none spoils the next call."""
    monkeypatch.setattr(tasks, "CALL_SECONDS", 1.0)
    kinds = len(PLANNED_FAILURES)
    server = devices("--devices", str(kinds), "--failing-share", "1")
    errors = []
    for number in range(1, kinds + 1):
        for _ in range(3):
            try:
                tasks.activate_ruleset.run(f"fw-{number:04}", 42)
                break
            except (tasks.DeviceError, HTTPError) as error:
                errors.append(error)
    seen = report(server)
    assert (seen["verified"], seen["doubled"]) == (kinds, 0)
    assert seen["activations"] > kinds, "an activation whose answer was lost is repeated"
    events = [event for log in seen["events"].values() for event in log]
    assert {event["reason"] for event in events if "reason" in event} == set(PLANNED_FAILURES)
    assert len(errors) == seen["failed_attempts"]
    assert {ReadTimeoutError, tasks.DeviceError} < {type(error) for error in errors}


def test_a_refusal_is_for_a_person(devices: Start, tmp_path: Path) -> None:
    """The first upgrade of a device is refused: an error of its own; the next one works."""
    path = tmp_path / "customers.json"
    write_customers([Customer(REFUSING, ("edge",), AGREED, (time.time(),))], path)
    devices("--devices", "0", "--failing-share", "0", "--customers", str(path))
    with pytest.raises(tasks.RefusalError, match="409"):
        tasks.upgrade_firmware.run("edge", 42)
    assert tasks.upgrade_firmware.run("edge", 42) == {"device": "edge", "version": 42}


def test_a_fork_does_not_speak_on_its_parents_connection(devices: Start) -> None:
    """Neither reads the answer to the other, nor does a thread that of another."""
    server = devices("--devices", "2", "--failing-share", "0")
    tasks.activate_ruleset.run("fw-0001", 42)
    child = os.fork()
    if child == 0:
        try:
            tasks.activate_ruleset.run("fw-0002", 42)
            os._exit(0)
        finally:
            os._exit(1)
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(tasks.check_health.run, "fw-0001") for _ in range(100)]
    assert {done.result()["device"] for done in asked} == {"fw-0001"}
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert report(server)["verified"] == 2
