"""What the isolation matrix knows of each resource: rows of an owner, unknown keys, bodies.

A new operation is in the matrix by itself. Its path parameters need an entry in PARAMETERS, its
body one in BODIES, by the operation's id.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model

from jobs.api.site import document
from jobs.models import Membership, Owner, Role, Run
from jobs.owners.tokens import make_token
from jobs.runs.cancellation import cancel_runs
from tests.jobs.api.conftest import ROOT
from tests.jobs.scenes import living_worker, submitted

METHODS: Final = frozenset({"get", "post", "put", "patch", "delete"})
ADD: Final = {"x": 1, "y": 2}


@dataclass(frozen=True, slots=True)
class Parameter:
    """How a path parameter is filled."""

    of: Callable[[Owner], Any]
    """Make a row of an owner, and return its key."""
    unknown: Any
    """A key of the right form that no row has."""
    is_owned: bool = True
    """False: its rows belong to no owner, so none is foreign."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the document."""

    id: str
    method: str
    path: str
    parameters: tuple[str, ...]
    scope: str
    has_body: bool

    def __str__(self) -> str:
        return self.id


def run_of(owner: Owner) -> UUID:
    [run] = submitted(owner, labels={"whose": owner.slug})
    return run.id


def cancelled_run_of(owner: Owner) -> UUID:
    run_id = run_of(owner)
    cancel_runs([run_id])
    return run_id


def member_of(owner: Owner) -> str:
    name = f"member-of-{owner.slug}"
    user, _ = get_user_model().objects.get_or_create(username=name)
    Membership.objects.get_or_create(owner=owner, user=user, defaults={"role": Role.VIEWER})
    return name


PARAMETERS: Final[dict[str, Parameter]] = {
    "run_id": Parameter(run_of, UUID(int=7 << 76 | 2 << 62)),
    "task": Parameter(lambda _owner: "tests.add", "tests.nothing", is_owned=False),
    "prefix": Parameter(
        lambda owner: make_token(owner.slug, scopes=["read"], owner=owner).token.prefix,
        "fs_aaaaaaaa",
    ),
    "slug": Parameter(lambda owner: owner.slug, "nobody99"),
    "user": Parameter(member_of, "nobody99"),
    "worker_id": Parameter(lambda _owner: living_worker(), UUID(int=9), is_owned=False),
}
"""By the name of the parameter."""

SPECIAL: Final[dict[str, dict[str, Callable[[Owner], Any]]]] = {
    "retry_run": {"run_id": cancelled_run_of},
}
"""Operations whose row must be in another state than a new one."""

BODIES: Final[dict[str, Any]] = {
    "submit_run": {"task": "tests.add", "arguments": ADD},
    "submit_many_runs": {"task": "tests.add", "arguments": [ADD]},
    "cancel_run": {},
    "retry_run": {},
    "cancel_runs": {"filter": {"task": "tests.add"}},
    "retry_runs": {"filter": {"task": "tests.add"}},
    "make_token": {"name": "program", "scopes": ["read"]},
    "revoke_token": {},
    "add_owner": {"slug": "initech"},
    "change_owner": {"name": "Acme"},
    "pause_owner": {},
    "resume_owner": {},
    "add_member": {"user": "newcomer", "role": "viewer"},
    "change_member": {"role": "operator"},
    "retry_dead_letters": {"task": "tests.add", "error": "E", "reason": "fixed"},
}

OF_INSTALLATION: Final = frozenset({"add_owner"})
"""Operations that only callers for the whole installation may use."""

CONDITIONAL: Final = ("change_owner", "change_member", "remove_member")
HEADERS: Final = {name: {"If-Match": "*"} for name in CONDITIONAL}
"""Headers that an operation needs."""

NAMES_OWNER: Final[dict[str, Callable[[str], dict[str, Any]]]] = {
    "submit_run": lambda slug: {**BODIES["submit_run"], "owner": slug},
    "submit_many_runs": lambda slug: {**BODIES["submit_many_runs"], "owner": slug},
    "cancel_runs": lambda slug: {"filter": {"owner": slug}},
    "retry_runs": lambda slug: {"filter": {"owner": slug}},
    "make_token": lambda slug: {**BODIES["make_token"], "owner": slug},
    "retry_dead_letters": lambda slug: {**BODIES["retry_dead_letters"], "owner": slug},
}
"""Bodies that name an owner."""


def operations() -> list[Operation]:
    """Return every operation of the API's document."""
    found = document(tasks=[], prefix=f"{ROOT}/")
    return [
        Operation(
            id=one["operationId"],
            method=method,
            path=path,
            parameters=tuple(each["name"] for each in one["parameters"] if each["in"] == "path"),
            scope=one["security"][0]["Token"][0],
            has_body="requestBody" in one,
        )
        for path, methods in found["paths"].items()
        for method, one in methods.items()
        if method in METHODS
    ]


def key_of(operation: Operation, parameter: str, owner: Owner) -> Any:
    """Make a row that the operation can act on, and return its key."""
    special = SPECIAL.get(operation.id, {})
    return special.get(parameter, PARAMETERS[parameter].of)(owner)


def words_of(owner: Owner) -> set[str]:
    """Return what an answer to another owner must not contain."""
    runs = Run.objects.filter(owner=owner).values_list("id", flat=True)
    members = Membership.objects.filter(owner=owner).values_list("user__username", flat=True)
    return {owner.slug, *map(str, runs), *members}
