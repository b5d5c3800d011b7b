"""The HTTP request task over real sockets."""

import json
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from email.message import Message
from typing import Any

import pytest
from pytest_django import Settings

from fleet import HEADER
from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.builtin.answer import retry_after, text_of
from jobs.catalog.builtin.errors import HttpRequestFailed, HttpRequestRefused
from jobs.catalog.builtin.http import build_request, fetch, http_request
from jobs.catalog.builtin.wire import BODY_LIMIT, Answer
from jobs.catalog.encoding import encode_result
from jobs.catalog.registry import resolve
from jobs.core.conf import setting
from jobs.core.errors import ArgumentError
from tests.jobs.catalog.builtin.conftest import HOSTILE_BYTES, Certificate, Server
from tests.jobs.runs.test_context import FACTS, RUN, in_task

LIMIT_SECONDS = 0.3


def get(url: str) -> Any:
    return build_request("GET", url, headers={}, body="", json=None)


def fetched(url: str, *answers: list[str], allowed: Sequence[str] = (), **options: Any) -> Answer:
    """Fetch a URL within 5 s. Each look-up of its host gets the next of these answers."""
    left = list(answers)
    return fetch(
        get(url),
        timeout_seconds=5,
        allowed=allowed,
        resolve=lambda _host, _port: left.pop(0),
        **options,
    )


@contextmanager
def ended_in_time() -> Iterator[None]:
    """The request within fails for its time limit, with generous slack for a busy machine."""
    started = time.monotonic()
    with pytest.raises(HttpRequestFailed, match=r"took longer than the limit of 0\.3 s"):
        yield
    assert time.monotonic() - started < LIMIT_SECONDS + 25


def test_the_answer_is_kept(allowed: str) -> None:
    """Status, a few headers, the body as text, and how long it took."""
    result = http_request("GET", f"{allowed}/echo?a=1")
    seen = json.loads(result["body"])
    assert (result["status"], result["is_cut"], result["seconds"] >= 0) == (200, False, True)
    assert seen["path"] == "/echo?a=1"
    assert result["headers"]["content-type"] == "application/json"
    assert "x-other" not in result["headers"]


def test_method_headers_and_body_are_sent(allowed: str) -> None:
    """As given, with a content type that fits unless one is given."""
    sent = http_request("POST", f"{allowed}/echo", headers={"X-Key": "k"}, body="zażółć")
    seen = json.loads(sent["body"])
    assert (seen["method"], seen["body"], seen["headers"]["x-key"]) == ("POST", "zażółć", "k")
    assert seen["headers"]["content-type"] == "text/plain; charset=utf-8"
    assert seen["headers"]["host"] == allowed.removeprefix("http://")
    sent = http_request(
        "PUT", f"{allowed}/echo", json={"a": [1]}, headers={"content-type": "application/x+json"}
    )
    seen = json.loads(sent["body"])
    assert json.loads(seen["body"]) == {"a": [1]}
    assert seen["headers"]["content-type"] == "application/x+json"


def test_only_the_beginning_of_a_large_body_is_kept(allowed: str) -> None:
    """64 KiB are kept, the rest is never read, and the result says so."""
    result = http_request("GET", f"{allowed}/flood/", timeout_seconds=5)
    assert (len(result["body"]), result["is_cut"]) == (BODY_LIMIT, True)
    assert not http_request("GET", f"{allowed}/bytes/{BODY_LIMIT}")["is_cut"]


@pytest.mark.parametrize(
    ("charset", "text"), [("iso-8859-1", "café"), ("utf-8", "caf\ufffd"), ("idna", "caf\ufffd")]
)
def test_the_body_is_read_in_its_charset(allowed: str, charset: str, text: str) -> None:
    """Bytes that are no text become U+FFFD; unusual codecs are not used."""
    assert http_request("GET", f"{allowed}/text/{charset}")["body"] == text


@pytest.mark.parametrize("byte", [b"\x00", b"\x1f", b"\xff", b'"'])
def test_a_body_that_is_no_text_fits_into_a_result(byte: bytes) -> None:
    """An image, say: the run must not fail after its request has been answered."""
    text = text_of(Answer(200, {}, byte * BODY_LIMIT, is_cut=True))
    assert len(text) == BODY_LIMIT
    encode_result({"body": text}, max_bytes=setting("RESULT_MAX_BYTES"))


def test_a_long_content_type_costs_no_time() -> None:
    """Its parser would take seconds for one of 60,000 semicolons."""
    kind = {"Content-Type": ";" * 60_000}
    answer = Answer(200, kind, b"caf\xc3\xa9", is_cut=False)
    began = time.process_time()
    assert text_of(answer) == "café"
    assert time.process_time() - began < 0.2


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_a_passing_trouble_may_be_tried_again(allowed: str, status: int) -> None:
    """The error is the one to retry on, and carries how long the server asked to wait."""
    with pytest.raises(HttpRequestFailed, match=f"answered {status}, 2xx was expected") as caught:
        http_request("GET", f"{allowed}/status/{status}?Retry_After=7&token=s3cret")
    assert caught.value.retry_after == 7
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("status", [304, 400, 401, 404, 410])
def test_other_unexpected_answers_are_final(allowed: str, status: int) -> None:
    """Asking again would give the same answer."""
    with pytest.raises(HttpRequestRefused, match=f"answered {status}, 2xx was expected"):
        http_request("GET", f"{allowed}/status/{status}")


def test_redirects_are_not_followed(allowed: str, server: Server) -> None:
    """A redirect could lead to an address that was never checked."""
    with pytest.raises(HttpRequestRefused, match="redirects are not followed, give the final URL"):
        http_request("GET", f"{allowed}/status/302?Location=/echo")
    assert server.requests == ["GET /status/302?Location=/echo"]


@pytest.mark.parametrize("path", ["drip/headers", "drip/body", "silent/"])
def test_the_time_limit_is_for_the_whole_exchange(allowed: str, path: str) -> None:
    """A server that sends a byte now and then gains nothing by it."""
    with ended_in_time():
        http_request("GET", f"{allowed}/{path}", timeout_seconds=LIMIT_SECONDS)


def test_the_time_limit_is_for_a_reader_that_does_not_read() -> None:
    """Sending ends in time, too."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        request = build_request("POST", url, headers={}, body="x" * 30_000_000, json=None)
        with ended_in_time():
            fetch(request, timeout_seconds=LIMIT_SECONDS, allowed=["127.0.0.1"])


def test_the_time_limit_is_for_the_look_up(server: Server) -> None:
    """A name server that does not answer does not hold the task."""

    def hang(_host: str, _port: int) -> list[str]:
        server.stopping.wait()
        return []

    with ended_in_time():
        fetch(get("https://device.test/"), timeout_seconds=LIMIT_SECONDS, allowed=[], resolve=hang)


@pytest.mark.parametrize("path", ["cut/", "nonsense/"])
def test_a_broken_answer_may_be_tried_again(allowed: str, path: str) -> None:
    """An answer that ends early, or is no HTTP, counts as none."""
    with pytest.raises(HttpRequestFailed, match="no answer"):
        http_request("GET", f"{allowed}/{path}?token=s3cret")


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("chunk-1", HttpRequestRefused),
        ("chunk-5", HttpRequestFailed),
        ("extensions", HttpRequestRefused),
        ("chunk-line", HttpRequestFailed),
        ("trailers", HttpRequestRefused),
        ("headers", HttpRequestRefused),
        ("continue", HttpRequestRefused),
    ],
)
def test_no_answer_makes_the_worker_read_without_end(
    allowed: str, server: Server, kind: str, error: type[Exception]
) -> None:
    """Headers and body are limited in bytes as they arrive, whatever the answer says of itself.

    What the server gets rid of beyond that lies in the buffers of the two sockets.
    """
    with pytest.raises(error):
        http_request("GET", f"{allowed}/hostile/{kind}", timeout_seconds=20)
    assert server.sent < HOSTILE_BYTES / 8


def test_an_unusual_port_is_for_allowed_hosts() -> None:
    """Public hosts are reached on 443 and 8443; other ports belong to other protocols."""

    def dial(address: tuple[str, int], _timeout: float) -> socket.socket:
        raise ConnectionRefusedError(f"dialled {address}")

    def request(url: str, *allowed: str) -> None:
        fetched(url, ["93.184.216.34"], allowed=allowed, dial=dial)

    for url in ("https://device.test:25/", "https://device.test:9200/", "https://device.test:80/"):
        with pytest.raises(HttpRequestRefused, match=r"443 or 8443; .* add 'device\.test:\d+'"):
            request(url)
    for url in ("https://device.test/", "https://device.test:8443/"):
        with pytest.raises(HttpRequestFailed, match="no answer"):
            request(url)
    with pytest.raises(HttpRequestFailed, match="no answer"):
        request("https://device.test:9200/", "device.test:9200")


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254"),
        *("0", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "１２７.0.0.1"),
    ],
)
def test_inner_addresses_are_refused(server: Server, host: str) -> None:
    """However they are spelt; nothing is sent."""
    with pytest.raises(HttpRequestRefused, match=r"host's address is|host is a number"):
        http_request("GET", f"https://{host}:{server.port}/echo", timeout_seconds=5)
    assert server.requests == []


def test_plain_http_is_for_allowed_hosts(server: Server, settings: Settings) -> None:
    """Elsewhere, everything sent could be read on the way. An entry with a port allows that port
    alone.
    """
    settings.FAIRSHIFT = {"HTTP_ALLOWED_HOSTS": ["127.0.0.1:1"]}
    for url in ("http://device.test/", f"http://127.0.0.1:{server.port}/echo"):
        with pytest.raises(HttpRequestRefused, match="HTTP_ALLOWED_HOSTS"):
            http_request("GET", url)


def test_an_entry_for_an_owner_is_for_its_runs_alone(server: Server, settings: Settings) -> None:
    """The owner is that of the run. A call outside of a run has none."""
    # `run`, as a worker calls it: a call of the task itself begins a request of its own.
    address = f"127.0.0.1:{server.port}"
    settings.FAIRSHIFT = {"HTTP_ALLOWED_HOSTS": [f"acme@{address}"]}
    for owner in ("acme", "other"):
        with in_task(id=RUN, **{HEADER: {**FACTS, "owner": owner}}):
            if owner == "acme":
                assert http_request.run("GET", f"http://{address}/echo")["status"] == 200
                continue
            with pytest.raises(HttpRequestRefused, match="HTTP_ALLOWED_HOSTS"):
                http_request.run("GET", f"http://{address}/echo")
    with pytest.raises(HttpRequestRefused, match="HTTP_ALLOWED_HOSTS"):
        http_request.run("GET", f"http://{address}/echo")
    assert server.requests == ["GET /echo"]


def test_one_inner_address_among_public_ones_refuses_the_name() -> None:
    """A name that points to both is a trap."""
    with pytest.raises(HttpRequestRefused, match="address is private"):
        fetched("https://device.test/", ["93.184.216.34", "10.0.0.1"])


def test_the_connection_goes_to_the_address_that_was_checked(
    tls_server: Server, certificate: Certificate
) -> None:
    """The name is resolved once. TLS and the Host header keep the URL's name."""
    dialled: list[tuple[str, int]] = []

    def dial(address: tuple[str, int], timeout: float) -> socket.socket:
        dialled.append(address)
        return socket.create_connection(("127.0.0.1", tls_server.port), timeout)

    # A second question would be answered by an inner address, or by nothing.
    addresses = (["93.184.216.34"], ["127.0.0.1"])
    answer = fetched("https://device.test/echo", *addresses, dial=dial, tls=certificate.client)
    assert dialled == [("93.184.216.34", 443)]
    assert json.loads(answer.body)["headers"]["host"] == "device.test"


@pytest.mark.parametrize(
    ("host", "is_issuer_known"),
    [("other.test", True), ("127.0.0.1", True), ("device.test", False)],
)
def test_a_server_that_cannot_prove_its_name_is_no_answer(
    tls_server: Server, certificate: Certificate, host: str, is_issuer_known: bool
) -> None:
    """A certificate for another name, or of an unknown issuer: nothing is sent, also to an allowed
    host.
    """
    trusted = {"tls": certificate.client} if is_issuer_known else {}
    url = f"https://{host}:{tls_server.port}/echo"
    with pytest.raises(HttpRequestFailed, match=r"no answer .*certificate"):
        fetched(url, ["127.0.0.1"], allowed=[host], **trusted)
    assert tls_server.requests == []


def test_the_next_address_is_tried(server: Server) -> None:
    """A host with several addresses is reached while one of them answers."""
    url = f"http://device.test:{server.port}/echo"
    assert fetched(url, ["127.0.0.2", "127.0.0.1"], allowed=["device.test"]).status == 200


def test_proxies_of_the_environment_are_not_used(
    allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy would connect to whatever it likes."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert http_request("GET", f"{allowed}/echo")["status"] == 200


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"method": "get"}, "method"),
        ({"method": "CONNECT"}, "method"),
        ({"url": "gopher://a.example"}, "url"),
        ({"url": "https://u:p@a.example"}, "url"),
        ({"headers": {"X-A": "1\r\nX-B: 2"}}, "headers"),
        ({"headers": {"X-A": 1}}, "headers.X-A"),
        ({"headers": {"Host": "b"}}, "headers"),
        ({"expect_status": "fine"}, "expect_status"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"timeout_seconds": 301}, "timeout_seconds"),
        ({"timeout_seconds": float("nan")}, "timeout_seconds"),
        ({"json": {1}}, "json"),
        ({"follow": True}, "follow"),
    ],
)
def test_wrong_arguments_fail_at_submit(arguments: dict[str, Any], field: str) -> None:
    """The form and the API name the field; no run comes to be."""
    given = {"method": "GET", "url": "https://a.example/"} | arguments
    with pytest.raises(ArgumentError) as caught:
        ArgumentSchema.of(resolve(http_request)).bind([], given)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "arguments",
    [
        {"method": "CONNECT"},
        {"url": "https://a.example/\r\nX: y"},
        {"headers": {"X-A": "1\r\nX-B: 2"}},
        {"timeout_seconds": 10**9},
        {"body": "x", "json": 1},
    ],
)
def test_wrong_arguments_fail_in_the_task_too(allowed: str, arguments: dict[str, Any]) -> None:
    """A plain Celery call has no submit that checks."""
    with pytest.raises(HttpRequestRefused):
        http_request(**({"method": "POST", "url": f"{allowed}/echo"} | arguments))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "120"}, 120),
        ({"Retry-After": "9" * 5000}, 86_400),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "soon"}, None),
        (
            {
                "Retry-After": "Fri, 20 Nov 2026 10:01:00 GMT",
                "Date": "Fri, 20 Nov 2026 10:00:00 GMT",
            },
            60,
        ),
        ({"Retry-After": "Fri, 20 Nov 1998 10:01:00 GMT"}, 0),
        ({"Retry-After": "Fri, 20 Nov 9998 10:01:00 GMT"}, 86_400),
    ],
)
def test_retry_after_is_read_in_both_forms(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, or a time by the server's own clock; at most a day, never negative."""
    message = Message()
    for name, value in headers.items():
        message[name] = value
    assert retry_after(message) == seconds  # type: ignore[arg-type]
