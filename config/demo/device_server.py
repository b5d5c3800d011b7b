"""The demo's devices behind HTTP/1.1, in their own process, which judges what the jobs did.

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
import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from config.demo.agreed_hours import read_customers
from config.demo.devices import (
    ANSWER_LOST,
    CLIENT_GONE,
    DROPPED,
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
from config.demo.http_wire import MAX_HEAD_BYTES, BadRequest, HttpRequest, answer, read_request

SLOW_SECONDS = 4.0
MAX_VERSION = 2**31 - 1


class HangUp(Exception):
    """The device closes the connection without an answer."""


class Refused(Exception):
    """The request is refused; the connection stays usable."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(slots=True)
class Connection:
    """One client's connection, and the last activation that was answered."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    unconfirmed: tuple[Device, Request] | None = None

    def client_is_gone(self) -> bool:
        return self.reader.at_eof() or self.reader.exception() is not None


class DeviceServer:
    """Answers for the devices until `stop` is called."""

    def __init__(self, devices: dict[str, Device], /, firmware: Firmware | None = None) -> None:
        self.devices = devices
        self.firmware = firmware or Firmware()
        self._conversations: set[asyncio.Task[None]] = set()

    async def listen(self, port: int, /) -> int:
        """Accept connections on the loopback address; return the port (chosen when 0)."""
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", port, limit=MAX_HEAD_BYTES, backlog=512
        )
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the server and every open connection."""
        self._server.close()
        for conversation in self._conversations:
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation = asyncio.ensure_future(self._converse(Connection(reader, writer)))
        self._conversations.add(conversation)
        conversation.add_done_callback(self._conversations.discard)

    async def _converse(self, connection: Connection) -> None:
        writer = connection.writer
        try:
            while request := await read_request(connection.reader):
                connection.unconfirmed = None
                writer.write(await self._answer(request, connection))
                await writer.drain()
                if not request.keep_alive:
                    break
        except BadRequest as error:
            content = {"error": str(error)}
            writer.write(answer(HTTPStatus.BAD_REQUEST, content, keep_alive=False))
        except ConnectionError:
            # The client closed without reading the last answer: its kernel sent a reset.
            if connection.unconfirmed:
                device, activation = connection.unconfirmed
                device.failed(activation, reason=ANSWER_LOST)
        except HangUp:
            writer.transport.abort()
        finally:
            writer.close()

    async def _answer(self, request: HttpRequest, connection: Connection) -> bytes:
        try:
            content = await self._route(request, connection)
        except Refused as refused:
            content = {"error": str(refused)}
            return answer(refused.status, content, keep_alive=request.keep_alive)
        return answer(HTTPStatus.OK, content, keep_alive=request.keep_alive)

    async def _route(self, request: HttpRequest, connection: Connection) -> dict[str, Any]:
        try:
            url = urlsplit(request.target)
        except ValueError as error:
            raise Refused(HTTPStatus.BAD_REQUEST, f"target: {error}") from error
        match [request.method, *url.path.split("/")[1:]]:
            case ["GET", "report"]:
                return report(self.devices, version=_version_asked(url.query))
            case ["GET", "devices", name]:
                return {"device": name, "version": self._device(name).version}
            case ["GET", "devices", name, "health"]:
                device = self._device(name)
                device.checks.append((time.monotonic(), _run_asking(url.query)))
                return {"device": name, "is_well": True}
            case ["PUT", "devices", name, "ruleset"]:
                device = self._device(name)
                return await _activate(device, _parse_activation(request.body), connection)
            case ["PUT", "devices", name, "firmware"]:
                return await self._upgrade(name, _parse_activation(request.body), connection)
            case ["GET", "firmware"]:
                return self.firmware.report(_version_asked(url.query))
            case (
                [_, "report" | "firmware"]
                | [_, "devices", _]
                | [_, "devices", _, "ruleset" | "health" | "firmware"]
            ):
                raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"method: {request.method}")
        raise Refused(HTTPStatus.NOT_FOUND, "no such page")

    async def _upgrade(
        self, name: str, activation: Request, connection: Connection
    ) -> dict[str, Any]:
        device = _of(self.firmware.devices, name)
        self.firmware.touched(device, at=time.time(), what="began")
        try:
            return await _activate(device, activation, connection)
        finally:
            # Not by another attempt: one that is slow ends after it, maybe outside of the hours.
            if device.was_activated_by(activation):
                self.firmware.touched(device, at=time.time(), what="ended")

    def _device(self, name: str) -> Device:
        return _of(self.devices, name)


def _of(devices: dict[str, Device], name: str) -> Device:
    try:
        return devices[name]
    except KeyError:
        raise Refused(HTTPStatus.NOT_FOUND, f"device: unknown name {name[:80]!r}") from None


async def _activate(device: Device, request: Request, connection: Connection) -> dict[str, Any]:
    failure = device.next_failure()
    if failure == SLOW:
        # Logged before the wait, as the client's next try may succeed during it.
        device.failed(request, reason=SLOW)
        await asyncio.sleep(SLOW_SECONDS)
        raise Refused(HTTPStatus.GATEWAY_TIMEOUT, "the device answered too late")
    await asyncio.sleep(device.response_seconds)
    if connection.client_is_gone():
        device.failed(request, reason=CLIENT_GONE)
        raise HangUp
    if failure == UNAVAILABLE:
        device.failed(request, reason=UNAVAILABLE)
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "the device is restarting")
    if failure == DROPPED:
        device.failed(request, reason=DROPPED)
        raise HangUp
    device.activated(request)
    if failure == ANSWER_LOST:
        device.failed(request, reason=ANSWER_LOST)
        raise HangUp
    connection.unconfirmed = (device, request)
    return {"device": device.name, "version": device.version}


def _parse_activation(body: bytes) -> Request:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(HTTPStatus.BAD_REQUEST, "body: not JSON") from error
    match content:
        case {"version": int(version)} if _is_version(version):
            run, attempt = content.get("run"), content.get("attempt")
        case _:
            raise Refused(HTTPStatus.BAD_REQUEST, f"version: expected 1 to {MAX_VERSION}")
    if not (run is None or (isinstance(run, str) and len(run) <= 100)):
        raise Refused(HTTPStatus.BAD_REQUEST, "run: expected a text of at most 100 characters")
    if not (attempt is None or _is_version(attempt)):
        raise Refused(HTTPStatus.BAD_REQUEST, f"attempt: expected 1 to {MAX_VERSION}")
    return Request(version, run, attempt)


def _version_asked(query: str) -> int:
    text = parse_qs(query).get("version", [""])[0]
    if text.isascii() and text.isdigit() and len(text) <= 10 and _is_version(int(text)):
        return int(text)
    raise Refused(HTTPStatus.BAD_REQUEST, f"version: expected 1 to {MAX_VERSION}")


def _run_asking(query: str) -> str:
    try:
        return str(UUID(parse_qs(query).get("run", [""])[0]))
    except ValueError:
        raise Refused(HTTPStatus.BAD_REQUEST, "run: expected the id of a run") from None


def _is_version(value: object) -> bool:
    return type(value) is int and 1 <= value <= MAX_VERSION


async def serve(
    devices: dict[str, Device], firmware: Firmware, /, *, port: int, port_file: Path | None
) -> None:
    """Serve until SIGTERM or SIGINT; write the port to standard output and to `port_file`."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    server = DeviceServer(devices, firmware)
    port = await server.listen(port)
    print(f"{len(devices)} devices at http://127.0.0.1:{port}", flush=True)  # noqa: T201  its log
    if port_file:
        # A process that waits for the file must not read half of it: a rename is atomic.
        partial = port_file.with_name(f"{port_file.name}.{os.getpid()}")
        partial.write_text(str(port))
        partial.replace(port_file)
    await stopping.wait()
    await server.stop()


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
