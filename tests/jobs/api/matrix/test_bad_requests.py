"""Every operation refuses bad bodies, pages, cursors, versions and keys: guarantees.md §3.

The answer names the field and the limit; it comes soon, and nothing is stored.
"""

import json
import time
from typing import Any, Final

import pytest
from django.core import signing
from pytest_django import Settings

from jobs.api.kit.pages import CURSOR_LIMIT, PAGE_LIMIT
from jobs.core.cursors import SALT
from jobs.core.inputs import KEY_LIMIT
from tests.jobs.api.conftest import problem
from tests.jobs.api.matrix.operations import BODIES, OF_INSTALLATION, OPERATIONS, Operation, by
from tests.jobs.api.matrix.rows import ADD
from tests.jobs.api.matrix.world import World, send
from tests.jobs.pages.matrix.stored import stored

WITH_BODY = [one for one in OPERATIONS if one.has_body]
IN_PAGES = [one for one in OPERATIONS if "limit" in one.filters]
WITH_CURSOR = [one for one in OPERATIONS if "cursor" in one.filters]
WITH_VERSION = [one for one in OPERATIONS if "If-Match" in one.headers]
NEEDING_VERSION = [one for one in OPERATIONS if "If-Match" in one.required_headers]
WITH_KEY = [one for one in OPERATIONS if "Idempotency-Key" in one.headers]
SECONDS: Final = 10.0

SET_BY_THE_SYSTEM: Final = ("id", "state", "token", "attempt", "version", "revision", "made")
CHANGED: Final[dict[str, dict[str, Any]]] = {
    "submit_run": {"arguments": {"x": 9, "y": 9}},
    "submit_many_runs": {"arguments": [ADD, ADD]},
    "backfill_job": {"end": "2026-01-01T02:00:00Z"},
}
"""What is other in the second body. A run of a job has no body: its key is for one job."""


def of_caller(world: World, operation: Operation) -> Any:
    """Return a client that may call the operation."""
    return world.callers["installation" if operation.id in OF_INSTALLATION else "acme"]


def raw(world: World, operation: Operation, data: bytes, media: str = "application/json") -> Any:
    """Send bytes as the body of an operation on a row of acme."""
    path = world.path_of(operation)
    client = of_caller(world, operation)
    headers = {"If-Match": "*"}
    began = time.monotonic()
    answer = client.generic(operation.method, path, data, content_type=media, headers=headers)
    assert time.monotonic() - began < SECONDS
    return answer


@by(WITH_BODY)
def test_a_bad_body_is_refused(world: World, operation: Operation) -> None:
    """With a stable code, and the field where there is one.

    One that the parser refuses and one that the schema does: all operations have the same parser,
    whose own tests (`kit/test_front`) have all bodies.
    """
    half = problem(raw(world, operation, b'{"a": "\\ud800"}'), 400, "unstorable_text")
    assert half["field"] == "a"
    assert problem(raw(world, operation, b"null"), 422, "invalid")["field"] == "body"
    problem(raw(world, operation, b"a=1", "text/plain"), 415, "unsupported_media_type")
    assert stored() == world.untouched[None]


@pytest.mark.proof
@by(WITH_BODY)
def test_an_empty_body_is_one_without_fields(world: World, operation: Operation) -> None:
    """If a field is missing, the answer names it, as for `{}`; nothing is stored."""
    without = raw(world, operation, b"{}")
    if without.status_code == 422:
        assert raw(world, operation, b"").json() == without.json()
        assert stored() == world.untouched[None]
    else:
        assert without.status_code < 300 or without.status_code == 409, without.content


@by(WITH_BODY)
def test_a_body_over_the_limit_is_refused(
    world: World, operation: Operation, settings: Settings
) -> None:
    """The answer has the limit in bytes."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "API_MAX_BODY_BYTES": 1024}
    refused = problem(raw(world, operation, b" " * 1025), 413, "body_too_large")
    assert refused["limit"] == 1024 and "1,024" in refused["detail"]
    assert stored() == world.untouched[None]


@pytest.mark.proof
@by(WITH_BODY)
def test_a_field_that_callers_cannot_set_is_named(world: World, operation: Operation) -> None:
    """Unknown ones, and those that only the system sets: each is listed."""
    wrong = {name: 1 for name in ("unheard_of", *SET_BY_THE_SYSTEM) if name not in operation.fields}
    keys = world.keys_of(operation, world.acme)
    body = {**BODIES[operation.id], **wrong}
    refused = problem(send(of_caller(world, operation), operation, keys, body), 422, "invalid")
    assert {each["field"] for each in refused["errors"]} == set(wrong)
    assert stored() == world.untouched[None]


@pytest.mark.proof
@by(OPERATIONS)
def test_an_unknown_query_parameter_is_refused(world: World, operation: Operation) -> None:
    """A misspelled filter would find, or export, all rows; nothing is stored."""
    client = of_caller(world, operation)
    content = json.dumps(BODIES.get(operation.id)) if operation.has_body else ""
    answer = client.generic(
        operation.method,
        f"{world.path_of(operation)}?stat=failed",
        content,
        content_type="application/json",
        headers={"If-Match": "*"},
    )
    refused = problem(answer, 422, "invalid")
    assert refused["field"] == "stat"
    assert ("did you mean state?" in refused["detail"]) == ("state" in operation.filters)
    assert stored() == world.untouched[None]


@by(IN_PAGES)
def test_a_page_has_a_limit(world: World, operation: Operation) -> None:
    """The answer names it."""
    path = world.path_of(operation)
    client = of_caller(world, operation)
    most = 1_000 if operation.id == "list_dead_letters" else PAGE_LIMIT
    for limit, told in ((0, 1), (-1, 1), (most + 1, most), (10**30, most)):
        refused = problem(client.get(path, {"limit": limit}), 422, "invalid")
        assert (refused["field"], refused["limit"]) == ("limit", told)
    assert problem(client.get(path, {"limit": "x"}), 422, "invalid")["field"] == "limit"


@by(WITH_CURSOR)
def test_a_cursor_of_another_list_is_refused(world: World, operation: Operation) -> None:
    """Also one that is signed by this installation, and one that is no cursor."""
    path = world.path_of(operation)
    client = of_caller(world, operation)
    signed = (
        signing.dumps(["0" * 16, "1"], salt=SALT),
        signing.dumps({"a": 1}, salt=SALT),
        signing.dumps(1, salt=SALT),
    )
    for cursor in (*signed, "-1", "x", "a:b:c"):
        refused = problem(client.get(path, {"cursor": cursor}), 422, "invalid_cursor")
        assert refused["field"] == "cursor"
    long = problem(client.get(path, {"cursor": "x" * (CURSOR_LIMIT + 1)}), 422, "invalid")
    assert (long["field"], long["limit"]) == ("cursor", CURSOR_LIMIT)


@by(WITH_VERSION)
def test_a_version_that_is_not_the_present_one_is_refused(
    world: World, operation: Operation
) -> None:
    """412, and nothing changes."""
    keys, client = world.keys_of(operation, world.acme), of_caller(world, operation)
    answer = send(client, operation, keys, **{"If-Match": '"old"'})
    assert problem(answer, 412, "precondition_failed")["field"] == "If-Match"
    assert stored() == world.untouched[None]


@by(NEEDING_VERSION)
def test_a_change_without_a_version_is_refused(world: World, operation: Operation) -> None:
    """428: the caller might overwrite what it has not read."""
    path = world.path_of(operation)
    content = BODIES.get(operation.id, "")
    call = getattr(of_caller(world, operation), operation.method)
    answer = call(path, content, content_type="application/json")
    assert problem(answer, 428, "precondition_required")["field"] == "If-Match"
    assert stored() == world.untouched[None]


@by(WITH_KEY)
def test_a_key_is_for_one_request(world: World, operation: Operation) -> None:
    """The same body gets the same answer, another one 409; a key that is too long is refused."""
    keys, client = world.keys_of(operation, world.acme), of_caller(world, operation)
    key = {"Idempotency-Key": "order-7"}
    first, again = (send(client, operation, keys, **key) for _ in range(2))
    assert first.status_code == again.status_code == 202, first.content
    assert first.content == again.content
    before = stored()
    long = problem(
        send(client, operation, keys, **{"Idempotency-Key": "k" * (KEY_LIMIT + 1)}), 422, "invalid"
    )
    assert long["field"] == "Idempotency-Key" and str(KEY_LIMIT) in long["detail"]
    if operation.id != "run_job":
        body = {**BODIES[operation.id], **CHANGED[operation.id]}
        conflict = send(client, operation, keys, body, **key)
        assert problem(conflict, 409, "idempotency_conflict")["field"] == "Idempotency-Key"
    assert stored() == before
