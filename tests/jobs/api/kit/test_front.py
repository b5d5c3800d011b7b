"""jobs/api/kit: bodies, media types and addresses that no operation takes; headers of answers."""

import json
from io import BytesIO
from typing import Any

import pytest
from django.test import Client
from psycopg.errors import ConnectionTimeout, DiskFull
from pytest_django import Settings

from jobs.api.kit.streams import open_streams
from jobs.core import barrier, sql
from jobs.models import Owner, Run
from tests.jobs.api.conftest import ADD, ROOT, Caller, post, problem
from tests.jobs.scenes import submitted


def send(client: Client, data: bytes, content_type: str = "application/json") -> Any:
    return client.generic("POST", f"{ROOT}/runs", data, content_type=content_type)


@pytest.mark.parametrize(
    ("data", "status", "code", "field"),
    [
        (b"", 422, "invalid", "task"),
        (b"{", 400, "malformed_json", None),
        (b"[]", 422, "invalid", None),
        (b"null", 422, "invalid", None),
        (b'{"task": NaN}', 400, "malformed_json", None),
        (b'{"task": "a", "task": "b"}', 400, "duplicate_key", "task"),
        (b'{"arguments": {"x": 1, "x": 2}}', 400, "duplicate_key", "x"),
        (b"[" * 20_000, 400, "too_deep", None),
        (b'{"a":' * 65 + b"1" + b"}" * 65, 400, "too_deep", None),
        (b'{"task": "\xff"}', 400, "invalid_utf8", None),
        (b'{"task": "a\\u0000"}', 400, "unstorable_text", "task"),
        (b'{"arguments": {"x": ["\\ud800"]}}', 400, "unstorable_text", "arguments.x.0"),
        (b'{"arguments": {"\\udfff": 1}}', 400, "unstorable_text", "arguments.\\udfff"),
        (b'{"arguments": {"x": 9223372036854775808}}', 400, "number_too_large", "arguments.x"),
        (b'{"arguments": {"x": ' + b"9" * 5_000 + b"}}", 400, "number_too_large", None),
        (b'{"arguments": {"x": 1e999}}', 400, "number_too_large", "arguments.x"),
    ],
)
def test_a_body_that_other_readers_take_differently_is_refused(
    caller: Caller, acme: Owner, *, data: bytes, status: int, code: str, field: str | None
) -> None:
    """With the field, and nothing stored."""
    refused = problem(send(caller(acme), data), status, code)
    if field is not None:
        assert refused["field"] == field
    assert not Run.objects.exists()


class BadChunks(BytesIO):
    """A body whose chunks the server cannot read: gunicorn's error is no OSError."""

    def read(self, _size: int | None = -1, /) -> bytes:
        raise RuntimeError("Invalid chunk size: b'ZZZ'")


def test_a_body_in_chunks_is_read(caller: Caller, acme: Owner, settings: Settings) -> None:
    """Many HTTP clients send a body of unknown length so; the limits are the same."""
    client = caller(acme)

    def sent_in_chunks(data: bytes, media_type: str = "application/json", **server: Any) -> Any:
        chunked: dict[str, Any] = {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}
        chunked |= {"wsgi.input": BytesIO(data), **server}
        return client.generic("POST", f"{ROOT}/runs", data, content_type=media_type, **chunked)

    ends: dict[str, Any] = {"wsgi.input_terminated": True}
    assert sent_in_chunks(json.dumps(ADD).encode(), **ends).status_code == 202
    problem(sent_in_chunks(b"x=1", "text/plain", **ends), 415, "unsupported_media_type")
    problem(sent_in_chunks(json.dumps(ADD).encode()), 411, "length_required")
    broken = {**ends, "wsgi.input": BadChunks()}
    problem(sent_in_chunks(b"ZZZ", **broken), 400, "incomplete_body")
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "API_MAX_BODY_BYTES": 1024}
    problem(sent_in_chunks(b" " * 1025, **ends), 413, "body_too_large")


def test_arguments_over_the_limit_are_refused_with_the_limit(
    caller: Caller, acme: Owner, settings: Settings
) -> None:
    """As in every other submit; the limit is a setting."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "PAYLOAD_MAX_BYTES": 1024}
    arguments = {"method": "POST", "url": "https://edge-7.example.com/", "body": "x" * 2_000}
    body = {"task": "fairshift.http_request", "arguments": arguments}
    answer = post(caller(acme), "/runs", body)
    assert problem(answer, 413, "payload_too_large")["limit"] == 1024


def test_other_media_types_are_refused(caller: Caller, acme: Owner) -> None:
    client = caller(acme)
    problem(
        send(client, b"x=1", "application/x-www-form-urlencoded"), 415, "unsupported_media_type"
    )
    problem(send(client, b"<x/>", "text/xml"), 415, "unsupported_media_type")
    problem(client.get(f"{ROOT}/runs", headers={"Accept": "image/png"}), 406, "not_acceptable")
    headers = {"Content-Encoding": "gzip"}
    problem(post(client, "/runs", ADD, **headers), 415, "unsupported_media_type")


def test_head_is_answered_as_get_without_a_body(caller: Caller, acme: Owner) -> None:
    """With the same status and headers; a stream leaves its place."""
    client = caller(acme)
    [run] = submitted(acme)
    for path in (f"/runs/{run.id}", "/runs", "/runs/nothing", "/exports/runs"):
        whole, head = (call(f"{ROOT}{path}") for call in (client.get, client.head))
        assert whole.content and not head.content
        assert head.status_code == whole.status_code
        assert {**whole.headers, "Content-Length": ""} == {**head.headers, "Content-Length": ""}
        if path != "/exports/runs":
            assert head["Content-Length"] == str(len(whole.content))
    assert open_streams.count == 0
    assert client.head(f"{ROOT}/runs/cancel").status_code == 405


def test_a_fault_of_ours_is_told_without_its_text(
    caller: Caller, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the next request of the connection is not the last one's owner."""
    client = caller(acme)
    client.raise_request_exception = False
    [run] = submitted(acme)

    def fail(*_args: Any, **_kwargs: Any) -> None:
        assert barrier.is_raised()
        raise RuntimeError("secret")

    monkeypatch.setattr("jobs.api.runs.reading.find_run", fail)
    answer = client.get(f"{ROOT}/runs/{run.id}")
    problem(answer, 500, "internal")
    assert b"secret" not in answer.content
    assert not barrier.is_raised()
    assert sql.query("SELECT current_user = session_user AS same")[0]["same"]


@pytest.mark.parametrize(
    ("cause", "said"),
    [(ConnectionTimeout(), "does not answer;"), (DiskFull(), "cannot do this now (DiskFull);")],
)
def test_without_postgresql_the_answer_is_503(
    caller: Caller, acme: Owner, monkeypatch: pytest.MonkeyPatch, cause: Exception, said: str
) -> None:
    """With Retry-After: the caller repeats the request. An error that PostgreSQL sent is named."""
    from django.db import OperationalError

    client = caller(acme)

    def gone(*_args: Any, **_kwargs: Any) -> None:
        raise OperationalError("the connection is closed") from cause

    monkeypatch.setattr("jobs.api.kit.callers.use_token", gone)
    answer = client.get(f"{ROOT}/runs")
    problem(answer, 503, "database_away")
    assert said in answer.json()["detail"]
    assert answer["Retry-After"] == "2"


@pytest.mark.parametrize("place", ["jobs", "calendars", "windows", "submissions"])
def test_a_number_beyond_all_ids_is_not_found(caller: Caller, acme: Owner, place: str) -> None:
    """PostgreSQL would refuse it."""
    problem(caller(acme).get(f"{ROOT}/{place}/{2**63}"), 404, "not_found")


def test_an_answer_to_a_token_has_no_cookie_and_the_strictest_policy(
    caller: Caller, acme: Owner
) -> None:
    """A browser that is shown it loads and frames nothing."""
    answer = caller(acme).get(f"{ROOT}/runs", headers={"Cookie": "sessionid=x; csrftoken=y"})
    assert answer.status_code == 200 and not answer.cookies
    assert answer["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert (answer["X-Frame-Options"], answer["X-Content-Type-Options"]) == ("DENY", "nosniff")
    assert not hasattr(answer.wsgi_request, "session") and not hasattr(answer.wsgi_request, "user")
