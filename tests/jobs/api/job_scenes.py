"""Scenes of jobs over the API: created and changed, with If-Match."""

from typing import Any

from django.test import Client

from tests.jobs.api.conftest import ROOT, post

ADD = {"x": 1, "y": 2}
JOB = {"key": "nightly", "task": "tests.add", "arguments": ADD}


def made(client: Client, **fields: Any) -> Any:
    """Create a job; return the answer, which has its ETag."""
    answer = post(client, "/jobs", {**JOB, **fields})
    assert answer.status_code == 201, answer.content
    return answer


def change(client: Client, method: str, path: str, body: Any = None, etag: str = "*") -> Any:
    """Send a change with If-Match."""
    headers = {"If-Match": etag} if etag else {}
    send = getattr(client, method)
    return send(f"{ROOT}{path}", body, content_type="application/json", headers=headers)
