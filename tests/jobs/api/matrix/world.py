"""The world of the isolation matrix: made once, and each test takes back what it has changed."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.test import Client, override_settings

from jobs.core import barrier
from jobs.core.sql import now
from jobs.models import (
    ApiToken,
    Owner,
)
from jobs.owners.tokens import make_token, revoke_token
from tests.jobs.actions.cases import READY
from tests.jobs.api.conftest import ALL, client_of
from tests.jobs.api.matrix.operations import BODIES, Operation
from tests.jobs.api.matrix.rows import FILTERS, PARAMETERS, ROWS, runs_on, words_of
from tests.jobs.pages.matrix.stored import stored

CHANGES_BY_ITSELF: Final = re.compile(
    r'"next": ?"[^"]+"|"[a-z_]*(_seconds|received|entitled)": ?[\d.e-]+'
    r"|\d{4}-\d\d-\d\d[T ][\d:.+Z-]+"
)
"""Signed cursors, moments and lengths of time, and parts of the worker time of all owners."""
IN_STATE: Final = {
    **dict.fromkeys(("look_run", "retry_run"), "run_id"),
    **{
        f"{name}_submission": "submission_id"
        for name in ("pause", "resume", "release", "approve", "resize")
    },
}
"""Actions whose row must be in another state than a new one, and their path parameter."""


@dataclass(frozen=True, slots=True)
class World:
    """Two owners with a row of each kind, and callers."""

    acme: Owner
    stranger: Owner
    keys: Mapping[tuple[int, str], Any]
    """By the id of the owner and the path parameter, or operation and parameter."""
    callers: Mapping[str, Client]
    alone: Mapping[str, Any]
    """What acme was answered by each operation that only reads, before the stranger had rows."""
    secrets: frozenset[str]
    """Words that no answer to acme may contain."""
    filters: Mapping[str, str]
    """Values of filters that find rows of the stranger only."""
    untouched: Mapping[Owner | None, Any]
    """All rows as they are stored, and those of the stranger."""

    def keys_of(self, operation: Operation, owner: Owner) -> dict[str, Any]:
        """Return the path parameters of a row that the operation can act on."""
        return keys_of(self.keys, operation, owner)

    def path_of(self, operation: Operation) -> str:
        """Return the path of an operation on a row of acme."""
        return operation.path.format(**self.keys_of(operation, self.acme))


@contextmanager
def taken_back() -> Iterator[None]:
    """Roll back what the block has written."""
    with transaction.atomic():
        yield
        barrier.lower()
        transaction.set_rollback(True)


@pytest.fixture
def db(whole_world: Any) -> Iterator[None]:
    """A part of the rows' transaction that is rolled back: each test finds the same rows."""
    with taken_back():
        yield


@contextmanager
def lasting(blocker: Any, make: Callable[[], Any]) -> Iterator[Any]:
    """Make the rows of a folder's tests, in a transaction that is rolled back after the last."""
    tasks = {**settings.FAIRSHIFT, "OFFERED_TASKS": ("tests.*",)}
    with blocker.unblock(), taken_back(), override_settings(FAIRSHIFT=tasks):
        yield make()


def make_world(operations: list[Operation]) -> World:
    """Make the rows of acme, ask for all that can be read, then make those of the stranger."""
    get_user_model().objects.create(username="newcomer")
    acme, stranger = (Owner.objects.create(slug=slug) for slug in ("acme", "stranger"))
    callers = callers_of(acme)
    unowned = {name: one.of(acme) for name, one in PARAMETERS.items() if not one.is_owned}
    keys = rows_of(acme, unowned)
    alone = {
        one.id: read(callers["acme"], one, keys_of(keys, one, acme))
        for one in operations
        if only_reads(one)
    }
    keys |= rows_of(stranger, unowned)
    return World(
        acme=acme,
        stranger=stranger,
        keys=keys,
        callers=callers,
        alone=alone,
        secrets=frozenset(words_of(stranger)),
        filters={name: value(stranger) for name, value in FILTERS.items()},
        untouched={owner: stored(owner) for owner in (None, stranger)},
    )


def keys_of(
    keys: Mapping[tuple[int, str], Any], operation: Operation, owner: Owner
) -> dict[str, Any]:
    """Return the path parameters of an owner's row, in the state that the operation needs."""
    return {
        name: keys.get((owner.pk, f"{operation.id}.{name}"), keys.get((owner.pk, name)))
        for name in operation.parameters
    }


def unknown_keys(operation: Operation) -> dict[str, Any]:
    """Return path parameters of the right form that no row has."""
    return {name: PARAMETERS[name].unknown for name in operation.parameters}


def only_reads(operation: Operation) -> bool:
    """Say whether an operation changes nothing, or can only count."""
    return operation.method == "get" or operation.counting() is not None


def read(client: Client, operation: Operation, keys: dict[str, Any]) -> Any:
    """Return what an operation answers without a change, but for what changes by itself."""
    answer = send(client, operation, keys, operation.counting())
    assert 200 <= answer.status_code < 300, (operation.id, answer.content)
    barrier.lower()
    text = CHANGES_BY_ITSELF.sub("", answer.content.decode())
    return answer.status_code, text, answer.headers.get("ETag"), sorted(answer.headers)


def send(
    client: Client, operation: Operation, keys: dict[str, Any], body: Any = None, **headers: str
) -> Any:
    """Call an operation with these path parameters."""
    path = operation.path.format(**keys)
    call = getattr(client, operation.method)
    if operation.method != "get":
        # Where a version must be named: any.
        headers.setdefault("If-Match", "*")
    if not operation.has_body:
        return call(path, headers=headers)
    content = BODIES[operation.id] if body is None else body
    return call(path, json.dumps(content), content_type="application/json", headers=headers)


def callers_of(acme: Owner, client_of: Callable[[str], Client] = client_of) -> dict[str, Client]:
    """Make tokens, and return a client for each; that of an empty secret has none."""
    made = {
        "acme": make_token("scene", scopes=ALL, owner=acme),
        "installation": make_token("scene", scopes=ALL),
        "read only": make_token("scene", scopes=["read"], owner=acme),
        "revoked": make_token("old", scopes=ALL, owner=acme),
        "expired": make_token("old", scopes=ALL, owner=acme),
    }
    revoke_token(made["revoked"].token)
    past = now() - timedelta(seconds=1)
    ApiToken.objects.filter(pk=made["expired"].token.pk).update(expires_at=past)
    secrets = {name: one.secret for name, one in made.items()}
    secrets |= {"anonymous": "", "made up": "fs_made_up"}
    return {name: client_of(secret) for name, secret in secrets.items()}


def rows_of(owner: Owner, unowned: dict[str, Any]) -> dict[tuple[int, str], Any]:
    """Make rows of each kind, by the owner's id and the parameter; `unowned` are of all owners."""
    runs_on(unowned["worker_id"], owner)
    made = {name: one.of(owner) for name, one in PARAMETERS.items() if one.is_owned}
    # Their streams end at once.
    for operation, noun in (("watch_lines_of_run", "run"), ("watch_submission", "submission")):
        ended = ROWS[noun](owner)
        ended.cancel()
        made[f"{operation}.{noun}_id"] = ended.pk
    for action, parameter in IN_STATE.items():
        row = ROWS[action.rpartition("_")[2]](owner)
        READY[action](row)
        made[f"{action}.{parameter}"] = row.pk
    return {(owner.pk, name): key for name, key in (unowned | made).items()}
