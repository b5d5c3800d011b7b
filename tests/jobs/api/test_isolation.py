"""Every operation of the document, for every kind of caller: no owner learns of another one's rows.

The matrix is made from the OpenAPI document, so that a new operation is in it by itself.
"""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from jobs.calendars import visibility
from jobs.core import barrier
from jobs.core.sql import now
from jobs.models import (
    ApiToken,
    Attachment,
    AuditEntry,
    Calendar,
    Job,
    Membership,
    Owner,
    Run,
    Window,
    WindowDecision,
)
from jobs.models.access import Access
from jobs.owners.tokens import make_token, revoke_token
from tests.jobs.api.conftest import Caller, client_of
from tests.jobs.api.matrix import (
    BODIES,
    NAMES_OWNER,
    OF_INSTALLATION,
    PARAMETERS,
    Operation,
    key_of,
    operations,
    words_of,
)

OPERATIONS = operations()
OF_ROWS = [one for one in OPERATIONS if any(PARAMETERS[name].is_owned for name in one.parameters)]
EACH_ALONE = ("filters", "barrier")
by_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=str)


@pytest.fixture(params=EACH_ALONE)
def one_wall(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the filters of `access`, or only PostgreSQL's barrier: each must be enough for rows."""
    if request.param == "filters":
        monkeypatch.setattr(barrier, "role", lambda: "")
    else:
        monkeypatch.setattr(Access, "narrowed", lambda _access, rows, **_options: rows)
        for name in ("visible_rows", "visible_attachments"):
            monkeypatch.setattr(visibility, name, lambda rows, _caller, **_options: rows)


def send(client: Client, operation: Operation, keys: dict[str, Any], body: Any = None) -> Any:
    """Call an operation with these path parameters."""
    path = operation.path.format(**keys)
    call = getattr(client, operation.method)
    # Where a version must be named: any.
    headers = {} if operation.method == "get" else {"If-Match": "*"}
    if not operation.has_body:
        return call(path, headers=headers)
    content = BODIES[operation.id] if body is None else body
    return call(path, content, content_type="application/json", headers=headers)


def own(operation: Operation, owner: Owner) -> dict[str, Any]:
    return {name: key_of(operation, name, owner) for name in operation.parameters}


def unknown(operation: Operation) -> dict[str, Any]:
    return {name: PARAMETERS[name].unknown for name in operation.parameters}


@by_operation
def test_every_operation_can_be_filled(operation: Operation) -> None:
    """An operation without a filler would be in no other test: add one to `matrix`."""
    assert set(operation.parameters) <= set(PARAMETERS)
    assert operation.has_body == (operation.id in BODIES)


@by_operation
def test_own_rows_are_answered(operation: Operation, caller: Caller, acme: Owner) -> None:
    """Else the refusals below would prove nothing."""
    get_user_model().objects.create(username="newcomer")
    client = caller() if operation.id in OF_INSTALLATION else caller(acme)
    answer = send(client, operation, own(operation, acme))
    assert 200 <= answer.status_code < 300, answer.content


@pytest.mark.parametrize("operation", OF_ROWS, ids=str)
def test_foreign_rows_are_answered_as_unknown_ones(
    one_wall: None, operation: Operation, caller: Caller, acme: Owner, stranger: Owner
) -> None:
    """With the same bytes and headers, and no change."""
    client = caller(acme)
    keys = own(operation, stranger)
    before = fingerprint()
    foreign, missing = (send(client, operation, each) for each in (keys, unknown(operation)))
    assert foreign.status_code == missing.status_code == 404
    assert foreign.content == missing.content and foreign.headers == missing.headers
    assert fingerprint() == before


@by_operation
def test_no_answer_contains_or_counts_foreign_rows(
    one_wall: None, operation: Operation, caller: Caller, acme: Owner, stranger: Owner
) -> None:
    """Whether the stranger has rows or not, acme gets the same; a named stranger is unknown."""
    client = caller(acme)
    for name in PARAMETERS.values():
        name.of(stranger)
    secrets = words_of(stranger)
    answer = send(client, operation, own(operation, acme))
    assert not [word for word in secrets if word in answer.content.decode()]
    if operation.method == "get":
        query = {"owner": stranger.slug}
        listed = client.get(operation.path.format(**own(operation, acme)), query)
        assert not [word for word in secrets if word in listed.content.decode()]
    if operation.id in NAMES_OWNER:
        before = fingerprint(stranger)
        named, none = (
            send(client, operation, {}, NAMES_OWNER[operation.id](slug))
            for slug in (stranger.slug, "nobody99")
        )
        assert named.status_code == none.status_code
        told, told_of_none = (each.content.decode() for each in (named, none))
        assert told.replace(stranger.slug, "nobody99") == told_of_none
        assert fingerprint(stranger) == before


@by_operation
def test_a_read_only_caller_changes_nothing(
    operation: Operation, caller: Caller, acme: Owner
) -> None:
    """403 for every scope but `read`, whether the row exists or not."""
    client = caller(acme, "read")
    keys = own(operation, acme)
    before = fingerprint()
    answer = send(client, operation, keys)
    if operation.scope == "read":
        assert answer.status_code in {200, 204}
    else:
        assert answer.status_code == 403
        assert answer.content == send(client, operation, unknown(operation)).content
    assert fingerprint() == before


@by_operation
def test_a_caller_without_a_usable_token_is_told_nothing(
    operation: Operation, db: None, acme: Owner
) -> None:
    """Anonymous, revoked, expired and made up: 401, with the same bytes."""
    revoked, expired = (
        make_token("old", scopes=["read", "submit", "operate", "approve", "admin"], owner=acme)
        for _ in range(2)
    )
    revoke_token(revoked.token)
    ApiToken.objects.filter(pk=expired.token.pk).update(expires_at=now() - timedelta(seconds=1))
    keys = own(operation, acme)
    before = fingerprint()
    clients = [Client(), *map(client_of, (revoked.secret, expired.secret, "fs_made_up"))]
    answers = [send(client, operation, keys) for client in clients]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1
    assert fingerprint() == before


def fingerprint(owner: Owner | None = None) -> Any:
    """Return what must be unchanged after a refused request."""
    rows: list[tuple[Any, str, tuple[str, ...]]] = [
        (Run, "owner", ("id", "state", "payload", "window_policy")),
        (ApiToken, "owner", ("id", "revoked_at")),
        (AuditEntry, "owner", ("id",)),
        (Calendar, "owner", ("id", "name", "cut_off_seconds", "version")),
        (Window, "calendar__owner", ("id", "revision", "reason")),
        (WindowDecision, "window__calendar__owner", ("id",)),
        (Attachment, "calendar__owner", ("id",)),
        (Job, "owner", ("id", "changed_at")),
        (Membership, "owner", ("id", "role")),
    ]
    return [
        [
            tuple(map(str, row))
            for row in model.objects.filter(**({path: owner} if owner else {}))
            .order_by("id")
            .values_list(*names)
        ]
        for model, path, names in rows
    ]
