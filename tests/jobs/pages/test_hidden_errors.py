"""jobs/runs/reads/errors.py: on every face, error texts are hidden as arguments are."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from jobs.models import Owner, Run
from jobs.owners.tokens import make_token
from tests.jobs.admin.conftest import hidden
from tests.jobs.scenes import failed

MESSAGE, TRACEBACK, CLASS = "no route to sw-4711", "in connect, line 4711", "KolibriError"
API = "/api/v1"
FACES = {
    "the list": "/runs/",
    "the run": "/runs/{id}/",
    "failures": "/failures/",
    "the list in the admin": "/admin/jobs/run/",
    "the run in the admin": "/admin/jobs/run/{id}/change/",
    "API: the list": f"{API}/runs",
    "API: the run": f"{API}/runs/{{id}}",
    "API: the timeline": f"{API}/runs/{{id}}/timeline",
    "API: dead letters": f"{API}/dead-letters",
    "NDJSON": f"{API}/exports/runs?format=ndjson",
    "CSV": f"{API}/exports/runs?format=csv",
    "NDJSON with arguments": f"{API}/exports/runs?format=ndjson&with_arguments=true",
}
WITH_TRACEBACK = {"the run", "API: the timeline"}


@pytest.fixture
def broken(acme: Owner) -> Run:
    """A run of acme that failed."""
    return failed(acme, f"app.{CLASS}", MESSAGE, traceback=TRACEBACK)


@pytest.mark.parametrize("face", FACES)
def test_error_texts_need_the_permission_of_arguments(
    broken: Run, person: Callable[..., Client], face: str
) -> None:
    """Without it a caller sees the class of the error.

    Pages name the permission, in the reader's language.
    """
    address = FACES[face].format(id=broken.id)
    seen = _text(person("mia", "view_run", "view_arguments", acme="viewer").get(address))
    assert CLASS in seen and MESSAGE in seen
    assert (TRACEBACK in seen) == (face in WITH_TRACEBACK)
    client = person("vic", "view_run", acme="viewer")
    blind = _text(client.get(address))
    assert CLASS in blind and MESSAGE not in blind and TRACEBACK not in blind
    is_page = API not in address
    assert ("Hidden: you need the permission" in blind) == is_page
    german = _text(client.get(address, headers={"Accept-Language": "de"}))
    assert ("Verborgen" in german) == is_page and "Hidden" not in german


@pytest.mark.parametrize("face", [name for name, address in FACES.items() if API in address])
def test_a_token_sees_error_texts_with_operate(broken: Run, acme: Owner, face: str) -> None:
    """As it sees arguments."""
    address = FACES[face].format(id=broken.id)
    for scopes, sees in ((["read"], False), (["read", "operate"], True)):
        token = make_token("scene", scopes=scopes, owner=acme).secret
        answer = Client().get(address, headers={"Authorization": f"Bearer {token}"})
        assert (MESSAGE in (text := _text(answer))) == sees and CLASS in text


def test_a_group_of_failures_is_shown_and_retried_without_error_texts(
    broken: Run, person: Callable[..., Client]
) -> None:
    """It is a group by class and task, which need no permission of their own."""
    client = person("vic", "view_run", "retry_run", acme="operator")
    page = _text(client.get("/failures/"))
    [retry] = re.findall(r'href="([^"]*error=app\.KolibriError[^"]*)">retry 1', page)
    address = retry.replace("&amp;", "&")
    client.post(address, {**hidden(client.get(address)), "reason": "the route is back"})
    broken.refresh_from_db()
    assert broken.state == "queued"


def _text(answer: Any) -> str:
    assert answer.status_code == 200, answer.content
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return str(body.decode())
