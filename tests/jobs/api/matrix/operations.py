"""What the isolation matrix knows of each operation: its parameters, filters and bodies.

A new operation is in the matrix by itself. Its path parameters need an entry in PARAMETERS and its
filters one in FILTERS or NAME_NO_ROW (`rows`). Its body needs one in BODIES, by the id of
the operation; that of an action is in `tests/jobs/actions/cases.py`.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from jobs.actions.registry import NOUNS
from jobs.api.site import document
from tests.jobs.actions import cases
from tests.jobs.api.conftest import ROOT
from tests.jobs.api.matrix.rows import ADD, PARAMETERS

METHODS: Final = frozenset({"get", "post", "put", "patch", "delete"})
JOB: Final = {"key": "nightly", "task": "tests.add", "arguments": ADD, "cron": "@daily"}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the document."""

    id: str
    method: str
    path: str
    parameters: tuple[str, ...]
    scope: str
    filters: tuple[str, ...]
    """Query parameters."""
    headers: frozenset[str]
    """Such as Idempotency-Key."""
    required_headers: frozenset[str]
    fields: frozenset[str]
    """Fields of the body; none: it has no body."""

    @property
    def has_body(self) -> bool:
        return bool(self.fields)

    @property
    def owned(self) -> tuple[str, ...]:
        """Path parameters whose rows belong to owners."""
        return tuple(name for name in self.parameters if PARAMETERS[name].is_owned)

    def __str__(self) -> str:
        return self.id

    def naming(self, slug: str) -> dict[str, Any] | None:
        """Return a body that names an owner; None if the operation takes none."""
        if "filter" in self.fields:
            return {**BODIES[self.id], "filter": {"owner": slug}}
        return {**BODIES[self.id], "owner": slug} if "owner" in self.fields else None

    def counting(self) -> dict[str, Any] | None:
        """Return a body that only counts; None if the operation cannot."""
        return {**BODIES[self.id], "dry_run": True} if "dry_run" in self.fields else None


FILE: Final = """BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//scene//EN
BEGIN:VEVENT
UID:one
DTSTAMP:20260101T000000Z
DTSTART:20300105T220000Z
DTEND:20300106T020000Z
SUMMARY:night
END:VEVENT
END:VCALENDAR
"""
FIT: Final = {"task": "tests.add", "targets": ["sw-1", "sw-2"]}
BODIES: Final[dict[str, Any]] = {
    **{
        f"{action.name}_{noun.name}": {}
        for noun in NOUNS
        for action in noun.actions
        if not action.is_deletion
    },
    **cases.BODIES,
    **{f"create_{noun}": body for noun, body in cases.NEW.items()},
    "attach_calendar": {},
    "forecast_runs": FIT,
    "override_submission": {"reason": "urgent"},
    "override_run": {"reason": "urgent"},
    "import_windows": {"file": FILE, "source": "change board"},
    "request_window": {"starts": "2030-01-05T22:00:00", "duration_seconds": 60, "zone": "UTC"},
    "change_window": {"reason": "moved"},
    "submit_run": {"task": "tests.add", "arguments": ADD},
    "submit_many_runs": {"task": "tests.add", "arguments": [ADD]},
    "cancel_runs": {"filter": {"task": "tests.add"}},
    "retry_runs": {"filter": {"task": "tests.add"}},
    "override_runs": {"filter": {"task": "tests.add"}, "reason": "urgent"},
    "move_runs": {"filter": {"task": "tests.add"}, "to": "tests.add"},
    "fail_runs": {"filter": {"task": "tests.add"}},
    "replay_webhook": {"deliveries": [1]},
    "create_job": JOB,
    "replace_job": {"task": "tests.add", "arguments": ADD},
    "change_job": {"priority": 3},
    "upsert_jobs": {"jobs": [JOB]},
}

OF_USERS: Final = frozenset({"publish_calendar"})
"""Operations that are refused to tokens."""
OF_INSTALLATION: Final = frozenset(
    {"create_owner", "create_member", "drain_worker", "undrain_worker"}
)
"""Operations that only callers for the whole installation may use, with the bodies above."""


def operations() -> list[Operation]:
    """Return every operation of the API's document."""
    found = document(tasks=[], prefix=f"{ROOT}/")
    schemas = found["components"]["schemas"]
    return [
        Operation(
            id=one["operationId"],
            method=method,
            path=path,
            parameters=tuple(each["name"] for each in one["parameters"] if each["in"] == "path"),
            scope=one["security"][0]["Token"][0],
            filters=tuple(each["name"] for each in one["parameters"] if each["in"] == "query"),
            headers=frozenset(_headers(one)),
            required_headers=frozenset(_headers(one, only={True})),
            fields=_fields(one, schemas),
        )
        for path, methods in found["paths"].items()
        for method, one in methods.items()
        if method in METHODS
    ]


def _headers(operation: dict[str, Any], *, only: Collection[bool] = (True, False)) -> Iterator[str]:
    for each in operation["parameters"]:
        if each["in"] == "header" and each.get("required", False) in only:
            yield each["name"]


def _fields(operation: dict[str, Any], schemas: dict[str, Any]) -> frozenset[str]:
    if "requestBody" not in operation:
        return frozenset()
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return frozenset(schemas[schema["$ref"].rpartition("/")[2]]["properties"])


OPERATIONS: Final = operations()


def by(chosen: list[Operation]) -> pytest.MarkDecorator:
    """Return the mark of a test that runs once for each of these operations."""
    return pytest.mark.parametrize("operation", chosen, ids=str)
