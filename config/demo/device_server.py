"""The demo's devices behind HTTP, in their own process, which judges what the jobs did.

    GET /devices/<id>                  the device's version
    GET /devices/<id>/health?run=...   a health check, counted in the report
    PUT /devices/<id>/ruleset          {"version": 42, "run": "...", "attempt": 1} activates
    PUT /devices/<id>/firmware         the same for a customer's device, which has agreed hours
    GET /report?version=42             each device's version, and every activation and failure
    GET /firmware?version=42           the upgrades, and those outside of the agreed hours

A device activates only while its client is connected; otherwise it counts a failed attempt. A slow
device counts a failed attempt at once and never activates. If the client did not read the answer
(its socket was reset), a failed attempt is counted right after the activation. The server cannot
notice a client that dies after it has read the answer.
"""

import argparse
import asyncio
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from pydantic import TypeAdapter, ValidationError
from tornado.http1connection import HTTP1Connection, HTTP1ServerConnection
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.netutil import bind_sockets
from tornado.web import Application, Finish, HTTPError, RequestHandler

from config.demo.agreed_hours import read_customers
from config.demo.devices import (
    ANSWER_LOST,
    CLIENT_GONE,
    DROPPED,
    MAX_VERSION,
    REFUSED,
    SLOW,
    UNAVAILABLE,
    Device,
    Request,
    device_names,
    lab_names,
    make_devices,
    report,
)
from config.demo.firmware import Firmware, make_firmware

SLOW_SECONDS = 4.0
MAX_BODY_BYTES = 64 * 1024
_ACTIVATION = TypeAdapter(Request)


class DeviceServer(HTTPServer):
    """Tornado's server, which also notices that a client has not read the last answer."""

    def initialize(self, *arguments: Any, **options: Any) -> None:
        super().initialize(*arguments, **options)
        self.unconfirmed: dict[IOStream, tuple[Device, Request]] = {}

    def on_close(self, server_conn: object) -> None:
        """Count a failed attempt if the client's kernel has sent a reset after an activation."""
        super().on_close(server_conn)
        stream = cast(HTTP1ServerConnection, server_conn).stream
        if (answered := self.unconfirmed.pop(stream, None)) and stream.error is not None:
            device, activation = answered
            device.failed(activation, reason=ANSWER_LOST)


class Page(RequestHandler):
    """A page about some devices; an error is answered with its reason."""

    is_client_gone = False

    def initialize(self, devices: dict[str, Device], firmware: Firmware) -> None:
        self.devices, self.firmware = devices, firmware

    @property
    def stream(self) -> IOStream:
        return cast(HTTP1Connection, self.request.connection).stream

    @property
    def server(self) -> DeviceServer:
        return cast(DeviceServer, self.application.settings["server"])

    def prepare(self) -> None:
        self.server.unconfirmed.pop(self.stream, None)

    def on_connection_close(self) -> None:
        self.is_client_gone = True

    def write_error(self, status_code: int, **details: Any) -> None:  # noqa: ARG002  Tornado's
        error = details["exc_info"][1]
        self.finish({"error": getattr(error, "log_message", None) or self._reason})

    def hang_up(self) -> Finish:
        """Close the connection without an answer; return what ends the handler."""
        self.detach().close()
        return Finish()

    def version_asked(self) -> int:
        text = self.get_query_argument("version", "")
        if text.isascii() and text.isdigit() and len(text) <= 10 and 1 <= int(text) <= MAX_VERSION:
            return int(text)
        raise HTTPError(400, f"version: expected 1 to {MAX_VERSION}")


class Report(Page):
    def get(self) -> None:
        self.finish(report(self.devices, version=self.version_asked()))


class Upgrades(Page):
    def get(self) -> None:
        self.finish(self.firmware.report(self.version_asked()))


class Version(Page):
    def get(self, name: str) -> None:
        self.finish({"device": name, "version": _of(self.devices, name).version})


class Health(Page):
    def get(self, name: str) -> None:
        device = _of(self.devices, name)
        try:
            run = str(UUID(self.get_query_argument("run", "")))
        except ValueError:
            raise HTTPError(400, "run: expected the id of a run") from None
        device.checks.append((time.monotonic(), run))
        self.finish({"device": name, "is_well": True})


class Ruleset(Page):
    async def put(self, name: str) -> None:
        await self.activate(_of(self.devices, name), _parse_activation(self.request.body))

    async def activate(self, device: Device, request: Request) -> None:
        failure = device.next_failure()
        if failure == SLOW:
            # Logged before the wait, as the client's next try may succeed during it.
            device.failed(request, reason=SLOW)
            await asyncio.sleep(SLOW_SECONDS)
            raise HTTPError(504, "the device answered too late")
        await asyncio.sleep(device.response_seconds)
        if self.is_client_gone:
            device.failed(request, reason=CLIENT_GONE)
            raise Finish
        if failure == UNAVAILABLE:
            device.failed(request, reason=UNAVAILABLE)
            raise HTTPError(503, "the device is restarting")
        if failure == REFUSED:
            device.failed(request, reason=REFUSED)
            raise HTTPError(409, "the device has no room for it")
        if failure == DROPPED:
            device.failed(request, reason=DROPPED)
            raise self.hang_up()
        device.activated(request)
        if failure == ANSWER_LOST:
            device.failed(request, reason=ANSWER_LOST)
            raise self.hang_up()
        self.server.unconfirmed[self.stream] = device, request
        self.finish({"device": device.name, "version": device.version})


class Upgrade(Ruleset):
    async def put(self, name: str) -> None:
        request = _parse_activation(self.request.body)
        device = _of(self.firmware.devices, name)
        self.firmware.touched(device, at=time.time(), what="began")
        try:
            await self.activate(device, request)
        finally:
            # Not by another attempt: one that is slow ends after it, maybe outside of the hours.
            if device.was_activated_by(request):
                self.firmware.touched(device, at=time.time(), what="ended")


PAGES = {
    "/report": Report,
    "/firmware": Upgrades,
    "/devices/([^/]+)": Version,
    "/devices/([^/]+)/health": Health,
    "/devices/([^/]+)/ruleset": Ruleset,
    "/devices/([^/]+)/firmware": Upgrade,
}


def _of(devices: dict[str, Device], name: str) -> Device:
    try:
        return devices[name]
    except KeyError:
        raise HTTPError(404, f"device: unknown name {name[:80]!r}") from None


def _parse_activation(body: bytes) -> Request:
    try:
        return _ACTIVATION.validate_json(body)
    except ValidationError as error:
        problem = error.errors()[0]
        name = problem["loc"][0] if problem["loc"] else "body"
        raise HTTPError(400, f"{name}: {problem['msg']}") from error


async def serve(
    devices: dict[str, Device], firmware: Firmware, /, *, port: int, port_file: Path | None
) -> None:
    """Serve until SIGTERM or SIGINT; write the port to standard output and to `port_file`."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    facts = {"devices": devices, "firmware": firmware}
    pages = Application(
        [(path, page, facts) for path, page in PAGES.items()], log_function=lambda _page: None
    )
    server = DeviceServer(pages, max_body_size=MAX_BODY_BYTES)
    pages.settings["server"] = server
    sockets = bind_sockets(port, "127.0.0.1", backlog=512)
    server.add_sockets(sockets)
    port = sockets[0].getsockname()[1]
    print(f"{len(devices)} devices at http://127.0.0.1:{port}", flush=True)  # noqa: T201  its log
    if port_file:
        # A process that waits for the file must not read half of it: a rename is atomic.
        partial = port_file.with_name(f"{port_file.name}.{os.getpid()}")
        partial.write_text(str(port))
        partial.replace(port_file)
    await stopping.wait()
    server.stop()
    await server.close_all_connections()


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description="A fleet of devices that speaks HTTP.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--devices", type=int, default=3000, help="fw-0001 and up")
    parser.add_argument("--lab-devices", type=int, default=4, help="lab-1 and up")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--failing-share", type=float, default=0.02, help="of devices, 0 to 1")
    parser.add_argument("--customers", type=Path, help="JSON of agreed_hours.py")
    parser.add_argument("--port-file", type=Path, help="where to write the port once it listens")
    options = parser.parse_args(arguments)
    if not 0 <= options.port <= 65535:
        parser.error("--port: expected 0 to 65535")
    if not (0 <= options.devices <= 100_000 and 0 <= options.lab_devices <= 100_000):
        parser.error("--devices, --lab-devices: expected 0 to 100000")
    if not 0 <= options.failing_share <= 1:
        parser.error("--failing-share: expected 0 to 1")
    names = device_names(options.devices) + lab_names(options.lab_devices)
    devices = make_devices(names, seed=options.seed, failing_share=options.failing_share)
    customers = read_customers(options.customers) if options.customers else []
    firmware = make_firmware(customers, seed=options.seed, failing_share=options.failing_share)
    asyncio.run(serve(devices, firmware, port=options.port, port_file=options.port_file))


if __name__ == "__main__":
    main()
