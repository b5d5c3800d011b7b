"""A wrong field of a body is named with its limit, and nothing is stored.

The values themselves are checked by the domain, whose tests have more of them. Of each way in which
a fault is found (schema, domain, row), the answer names the field.
"""

from typing import Any, Final

import pytest
from django.test import Client

from jobs.models import ApiToken, Backfill, IdempotencyKey, Job, Owner, Run, Target, Window
from tests.jobs.api.conftest import ADD, Caller, post
from tests.jobs.api.job_scenes import JOB, made
from tests.jobs.windows_world import calendar_of

NIGHT: Final = {
    "starts": "2030-01-05T22:00:00",
    "duration_seconds": 7_200,
    "zone": "Europe/Berlin",
    "rule": "FREQ=WEEKLY;BYDAY=SA",
}
PROGRAM: Final = {"name": "program", "scopes": ["read"]}
WEEK: Final = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-08T00:00:00Z"}
MANY: Final = {**ADD, "arguments": [ADD["arguments"]] * 3}
WHOLE: Final = ["100%"]
BODIES: Final[dict[str, dict[str, Any]]] = {
    "/runs": ADD,
    "/jobs": JOB,
    "/tokens": PROGRAM,
    "/submissions": MANY,
    "/submissions/fit": {"task": "tests.add", "targets": ["sw-1", "sw-2"]},
    "/calendars/{calendar}/windows": NIGHT,
    "/jobs/{job}/backfill": WEEK,
}
WRONG: Final[dict[str, list[tuple[dict[str, Any], str, str]]]] = {
    "/runs": [
        ({"task": "tests.ad"}, "task", "did you mean 'tests.add'?"),
        ({"countdown": 1e18}, "countdown", "31622400"),
        ({"eta": "2026-01-01T00:00:00"}, "eta", "timezone"),
        ({"eta": "2026-02-30T00:00:00Z"}, "eta", "day"),
        ({"labels": {"a": "b" * 201}}, "labels.a", "200"),
        ({"labels": {"a": 7}}, "labels.a", "string"),
        ({"attempt": 3}, "attempt", "not permitted"),
        ({"owner": "stranger"}, "owner", "stranger"),
        ({"owner": "nobody"}, "owner", "nobody"),
        ({"arguments": {"x": 1}}, "arguments.y", "required"),
        ({"arguments": []}, "arguments", "dict"),
        ({"queue": "nowhere"}, "queue", "jobs"),
        ({"target": "{x}"}, "target", ""),
        ({"window": "maybe"}, "window", ""),
    ],
    "/jobs": [
        ({"task": "tests.nothing"}, "task", "tests.nothing"),
        ({"task": ""}, "task", ""),
        ({"once_at": "2027-02-30T00:00:00Z"}, "once_at", "day"),
        ({"once_at": "2027-01-01T00:00:00"}, "once_at", "timezone"),
        ({"once_at": "9999-01-01T00:00:00Z"}, "once_at", "2199"),
        ({"once_at": "0001-01-01T00:00:00+14:00"}, "once_at", "1970"),
        ({"deadline_seconds": 1e18}, "deadline_seconds", "2592000"),
        ({"labels": {"a": "b" * 201}}, "labels.a", "200"),
        ({"arguments": {"x": "one", "y": 2}}, "arguments.x", "integer"),
        ({"arguments": [1]}, "arguments", "dict"),
        ({"paused_until": None}, "paused_until", "not permitted"),
    ],
    "/tokens": [
        ({"name": ""}, "name", "at least 1 character"),
        ({"scopes": []}, "scopes", "1"),
        ({"scopes": ["root"]}, "scopes.0", "read"),
        ({"owner": "stranger"}, "owner", "stranger"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at", "passed"),
        ({"expires_at": "2030-01-01T00:00:00"}, "expires_at", "timezone"),
    ],
    "/submissions": [
        ({"waves": {"sizes": [1, "x"]}}, "waves.sizes[1]", ""),
        ({"waves": {"sizes": [1]}}, "waves.sizes", ""),
        ({"waves": {"sizes": WHOLE, "stop_at": "x"}}, "waves.stop_at", ""),
        ({"waves": {"sizes": WHOLE, "between": 0}}, "waves.between", ""),
        ({"waves": {"sizes": WHOLE, "spread": "site"}}, "waves.spread", ""),
        ({"waves": {"sizes": WHOLE, "other": 1}}, "waves.other", ""),
    ],
    "/submissions/fit": [
        ({"targets": None}, "targets", ""),
        ({"targets": None, "group": "none"}, "group", ""),
        ({"at": "9999-01-01T00:00:00Z"}, "at", ""),
        ({"at": "2030-01-01T00:00:00"}, "at", ""),
        ({"expected_seconds": 0}, "expected_seconds", ""),
    ],
    "/calendars/{calendar}/windows": [
        ({"duration_seconds": 0}, "duration_seconds", ""),
        ({"starts": "2030-01-05T22:00:00Z"}, "starts", ""),
        ({"starts": "2030-02-30T22:00:00"}, "starts", ""),
        ({"starts": 7}, "starts", ""),
        ({"starts": "2030-01-06T22:00:00"}, "starts", ""),
        ({"valid_from": "2030-01-05T22:00:00"}, "valid_from", ""),
        ({"effect": "party"}, "effect", ""),
        ({"reason": "x" * 501}, "reason", ""),
    ],
    "/jobs/{job}/backfill": [
        ({"end": WEEK["start"]}, "end", ""),
        ({"end": "2190-01-01T00:00:00Z"}, "end", ""),
        ({"start": "2026-01-01T00:00:00"}, "start", "timezone"),
    ],
}
STORED: Final = (ApiToken, Backfill, IdempotencyKey, Job, Run, Target, Window)


@pytest.fixture
def client(caller: Caller, acme: Owner, stranger: Owner) -> Client:
    return caller(acme)


@pytest.mark.parametrize("path", WRONG)
def test_each_wrong_field_is_named_and_nothing_is_stored(
    client: Client, acme: Owner, path: str
) -> None:
    """With its limit. Every operation refuses fields that only the system sets: see the matrix."""
    job = int(made(client, key="daily", cron="@daily").json()["id"])
    to = path.format(calendar=calendar_of(acme).pk, job=job)
    before = [model.objects.count() for model in STORED]
    for changed, field, told in WRONG[path]:
        refused = post(client, to, {**BODIES[path], **changed})
        assert refused.status_code == 422, (changed, refused.content)
        problem = refused.json()
        assert problem["field"] == field and told in problem["detail"].replace(",", ""), problem
    assert [model.objects.count() for model in STORED] == before
