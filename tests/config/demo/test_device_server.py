"""The device server over real HTTP."""

import json
import socket
import sys
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from config.demo.agreed_hours import AGREED, UNAPPROVED, Customer, write_customers
from config.demo.devices import SLOW
from config.demo.firmware import make_firmware
from tests.commands import ran
from tests.config.demo.conftest import RunningServer

Start = Callable[..., RunningServer]
ONE_DEVICE = ("--devices", "1", "--lab-devices", "0", "--failing-share", "0")


def call(
    connection: HTTPConnection, method: str, path: str, content: Any = None
) -> tuple[int, dict[str, Any]]:
    """Send one request and return its status and content; the connection stays open."""
    connection.request(method, path, None if content is None else json.dumps(content))
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def activate(connection: HTTPConnection, device: str, **content: Any) -> tuple[int, dict[str, Any]]:
    """Ask a device for version 42, or for `content`."""
    content = {"version": 42, "run": "run", "attempt": 1} | content
    return call(connection, "PUT", f"/devices/{device}/ruleset", content)


def the_report(server: RunningServer) -> dict[str, Any]:
    """Return the report about version 42, over a connection of its own."""
    return call(server.connect(), "GET", "/report?version=42")[1]


def test_an_activation_shows_on_the_device_and_in_the_report(start_server: Start) -> None:
    """The device has the activated version; the report names run and attempt.

    A second activation of the healthy device is counted as doubled.
    """
    server = start_server("--devices", "2", "--lab-devices", "1", "--failing-share", "0")
    connection = server.connect()
    assert call(connection, "GET", "/devices/fw-0001") == (
        200,
        {"device": "fw-0001", "version": 41},
    )
    assert activate(connection, "fw-0001") == (200, {"device": "fw-0001", "version": 42})
    assert call(connection, "GET", "/devices/fw-0001")[1]["version"] == 42
    report = the_report(server)
    assert (report["devices"], report["verified"], report["doubled"]) == (3, 1, 0)
    assert report["missing"] == ["fw-0002", "lab-1"]
    event = {"outcome": "activated", "version": 42, "run": "run", "attempt": 1}
    assert report["events"] == {"fw-0001": [event]}
    activate(connection, "fw-0001", attempt=2)
    report = the_report(server)
    assert (report["activations"], report["doubled"]) == (2, 1)
    assert report["doubled_devices"] == ["fw-0001"]


def test_bytes_that_are_no_request_stop_nothing(one_server: RunningServer) -> None:
    """The next client is served."""
    with socket.create_connection(("127.0.0.1", one_server.port), timeout=5) as client:
        client.sendall(b"\x00\xff\xfe garbage\r\n\r\n")
        client.recv(1000)
    assert the_report(one_server)["events"] == {}


@pytest.mark.parametrize(
    "body",
    [
        *("", "{", "[]", "[" * 60_000, '{"version": "42"}', '{"version": true}', '{"version": 0}'),
        *('{"version": 99999999999}', '{"version": NaN}', '{"version": 42, "run": 7}'),
        '{"version": 42, "attempt": -1}',
    ],
)
def test_a_wrong_body_gets_400_and_the_connection_lives(
    one_server: RunningServer, body: str
) -> None:
    """A well-framed request with a wrong body is refused by name; nothing is activated."""
    connection = one_server.connect()
    connection.request("PUT", "/devices/fw-0001/ruleset", body)
    response = connection.getresponse()
    assert response.status == 400
    name = json.loads(response.read())["error"].split(":")[0]
    assert name in {"body", "version", "run", "attempt"}
    shown = call(connection, "GET", "/devices/fw-0001")
    assert shown == (200, {"device": "fw-0001", "version": 41})


def test_sigterm_ends_it_with_open_connections(start_server: Start) -> None:
    """It ends at once with 0, also in the middle of a request."""
    server = start_server(*ONE_DEVICE)
    idle, busy = server.connect(), server.connect()
    call(idle, "GET", "/devices/fw-0001")
    busy.request("PUT", "/devices/fw-0001/ruleset", '{"version": 42}')
    server.process.terminate()
    assert server.process.wait(timeout=300) == 0
    with pytest.raises(ConnectionRefusedError):
        server.connect().connect()


def test_the_server_does_not_need_django() -> None:
    """It is the judge: it shares no code with what it judges.

    The package around it makes the Celery app; an empty one in its place shows its own imports.
    """
    code = (
        "import sys, types; sys.modules['config'] = config = types.ModuleType('config');"
        " config.__path__ = ['config']; import config.demo.device_server;"
        " assert not {'django', 'celery', 'jobs', 'fleet'} & set(sys.modules)"
    )
    ran(sys.executable, "-c", code).check_returncode()


def test_a_customers_device_keeps_hours_and_reports_what_does_not(
    start_server: Start, tmp_path: Path
) -> None:
    """An upgrade works at any time; outside of hours its begin and its end are in the report."""
    now = time.time()
    path = tmp_path / "customers.json"
    customers = [
        Customer("fabrikam", ("fabrikam-1",), AGREED, (now - 3_600,)),
        Customer("globex", ("globex-1",), AGREED, (now - 1, now + 3_600)),
        Customer("litware", ("litware-1",), UNAPPROVED, (now - 1,)),
    ]
    write_customers(customers, path)
    connection = start_server(*ONE_DEVICE, "--customers", str(path)).connect()
    for name in ("fabrikam-1", "globex-1", "litware-1"):
        content = {"version": 42, "run": "run", "attempt": 1}
        status, _ = call(connection, "PUT", f"/devices/{name}/firmware", content)
        assert status == 200
    report = call(connection, "GET", "/firmware?version=42")[1]
    assert report["customers"] == {"fabrikam": 1, "globex": 1, "litware": 1}
    facts = [(event["device"], event["status"], event["what"]) for event in report["outside"]]
    assert facts == [
        (name, status, what)
        for name, status in (("fabrikam-1", AGREED), ("litware-1", UNAPPROVED))
        for what in ("began", "ended")
    ]
    assert call(connection, "PUT", "/devices/fw-0001/firmware", content)[0] == 404


def test_a_late_answer_is_no_end_of_an_upgrade(start_server: Start, tmp_path: Path) -> None:
    """The device is slow, another attempt gives it the version, and then the slow one ends."""
    names = tuple(f"litware-{number}" for number in range(8))
    customers = [Customer("litware", names, UNAPPROVED, (time.time() - 1,))]
    path = tmp_path / "customers.json"
    write_customers(customers, path)
    devices = make_firmware(customers, seed=1, failing_share=1.0).devices
    slow = next(name for name, device in devices.items() if list(device.failures) == [SLOW])
    server = start_server("--customers", str(path), "--failing-share", "1", "--seed", "1")
    content = {"version": 42, "run": "run", "attempt": 1}
    asked = server.connect()
    asked.request("PUT", f"/devices/{slow}/firmware", json.dumps(content))
    content["attempt"] = 2
    assert call(server.connect(), "PUT", f"/devices/{slow}/firmware", content)[0] == 200
    assert asked.getresponse().status == 504
    report = call(server.connect(), "GET", "/firmware?version=42")[1]
    assert [event["what"] for event in report["outside"]] == ["began", "began", "ended"]
