"""The OpenAPI document: committed, typed for each task, and kept by the answers; the tasks."""

import json
import re

import pytest
from django.contrib.staticfiles.finders import find
from django.test import Client

from jobs.api.site import document
from jobs.catalog.registry import offered
from jobs.models import Owner
from jobs.owners.tokens import make_token
from tests.docs.generate import OPENAPI, openapi
from tests.docs.pages import PROJECT
from tests.jobs.api.conftest import ALL, ROOT, Caller, problem
from tests.jobs.api.judging import judge, judge_one
from tests.jobs.scenes import submitted

CALLERS = {"acme": ALL, "northwind": ALL, "read only": ("read",), "anonymous": ()}
EXAMPLES = {"acme": 5, "northwind": 2, "read only": 2, "anonymous": 1}
"""Of each operation."""


def test_the_committed_document_is_that_of_the_code() -> None:
    """Clients are generated from it, so a change of it is a change that reviewers see."""
    assert (PROJECT / OPENAPI).read_text() == openapi(), "run `make docs`"


def test_bodies_are_typed_for_each_task_on_offer(db: None) -> None:
    """A generated client has a type for each task, with its arguments."""
    schemas = document(tasks=offered(), prefix="/")["components"]["schemas"]
    body = schemas["RunToSubmit"]
    reference = body["discriminator"]["mapping"]["tests.add"]
    assert {"$ref": reference} in body["oneOf"]
    typed = schemas[reference.rpartition("/")[2]]
    assert typed["properties"]["task"]["const"] == "tests.add"
    arguments = schemas[typed["properties"]["arguments"]["$ref"].rpartition("/")[2]]
    assert set(arguments["required"]) == {"x", "y"}
    text = json.dumps(schemas)
    for name in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in schemas, name


def test_every_operation_names_its_scope(db: None) -> None:
    """And its problems, of one form."""
    for path, methods in document(tasks=[], prefix="/")["paths"].items():
        for operation in methods.values():
            [scope] = operation["security"][0]["Token"]
            assert f"Scope: `{scope}`" in operation["description"], path
            assert operation["responses"]["401"] == {"$ref": "#/components/responses/Problem"}


def test_every_change_of_a_row_documents_if_match(db: None) -> None:
    """A generated client could not send it else. An attachment has no version."""
    without = {
        operation["operationId"]
        for methods in document(tasks=[], prefix="/")["paths"].values()
        for method, operation in methods.items()
        if method in {"put", "patch", "delete"}
        and not any(
            one["name"] == "If-Match" and one["required"] for one in operation["parameters"]
        )
    }
    assert without == {"detach_calendar"}


def test_the_document_and_its_page_are_for_known_callers(caller: Caller, acme: Owner) -> None:
    """They name the tasks of this installation."""
    assert Client().get(f"{ROOT}/openapi.json").status_code == 401
    assert caller(acme, "read").get(f"{ROOT}/openapi.json").json()["openapi"] == "3.1.0"
    assert Client().get(f"{ROOT}/docs").status_code == 302


def test_the_page_needs_no_script_or_style_of_others(admin_client: Client) -> None:
    """It works under the policy of the site: files of our own server, nothing inline."""
    page = admin_client.get(f"{ROOT}/docs")
    text = page.content.decode()
    assert "default-src 'self'" in page["Content-Security-Policy"]
    assert "<script>" not in text and "<style" not in text and "://" not in text
    for source in re.findall(r'(?:src|href)="(/[^"]+)"', text):
        assert find(source.removeprefix("/static/")), source


@pytest.mark.proof
@pytest.mark.parametrize("name", CALLERS)
def test_answers_keep_to_the_document(
    committed: None, name: str, acme: Owner, northwind: Owner
) -> None:
    """Whatever is sent: no fault of the server, no undocumented status, no other form."""
    headers = {}
    if scopes := CALLERS[name]:
        owner = northwind if name == "northwind" else acme
        submitted(owner, 2)
        headers["Authorization"] = (
            f"Bearer {make_token('judge', scopes=scopes, owner=owner).secret}"
        )
    assert judge(headers, examples=EXAMPLES[name]) > 0


def test_the_events_of_a_submission_keep_to_the_document(committed: None, acme: Owner) -> None:
    """Made-up requests seldom name a submission that has ended; others have no stream to judge."""
    [run] = submitted(acme)
    run.cancel()
    secret = make_token("judge", scopes=["read"], owner=acme).secret
    told = judge_one(
        "get",
        "/submissions/{submission_id}/events",
        {"submission_id": run.submission_id},
        headers={"Authorization": f"Bearer {secret}"},
    )
    assert "event: end" in told


def test_a_task_is_shown_with_the_schema_of_its_arguments(caller: Caller, acme: Owner) -> None:
    """A form or a client can be made from it; a registered task that is not on offer is unknown."""
    client = caller(acme, "read")
    listed = {one["name"]: one for one in client.get(f"{ROOT}/tasks").json()["items"]}
    shown = client.get(f"{ROOT}/tasks/tests.add").json()
    assert listed["tests.add"] == shown
    assert shown["arguments"]["required"] == ["x", "y"]
    assert shown["arguments"]["properties"]["x"]["type"] == "integer"
    assert "fairshift.http_request" in listed
    assert not [name for name in listed if name.startswith("fairshift.system.")]
    problem(client.get(f"{ROOT}/tasks/fairshift.system.sweep"), 404, "not_found")
