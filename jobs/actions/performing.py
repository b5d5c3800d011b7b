"""Perform an action for a caller: find, check, lock, compare, act. Every face calls this."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import DataError, transaction
from pydantic import BaseModel

from jobs.actions.declared import Action, Call, Noun, creation_of, offered_of
from jobs.core import barrier
from jobs.core.errors import (
    AccessDenied,
    ActionRefused,
    ArgumentError,
    FairshiftError,
    FieldError,
    NotFound,
    OptionError,
    PayloadTooLarge,
    PermissionMissing,
    StaleRow,
    UnknownTask,
)
from jobs.core.language import in_language
from jobs.core.phrases import phrase
from jobs.models import ApiToken, Owner, Scope
from jobs.models.access import Access
from jobs.owners.caps import refuse_more_runs
from jobs.runs.bulk import Moved, OwnedKey
from jobs.runs.bulk import find as find_rows

BUDGET_SECONDS: Final = 20.0
"""How long one request performs an action on many rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What an action did."""

    row: Any
    body: Any
    value: Any
    """What its verb returned."""
    text: str
    count: int | None = None
    """How many runs it adds, if it adds any."""


def find(noun: Noun, key: Any, *, by: Access) -> Any:
    """Return the row with this key that the caller sees; raise NotFound if there is none.

    A row of another owner is as unknown as one that does not exist.
    """
    try:
        if noun.owner is None:
            # It has no owner, and is not readable behind the barrier.
            with barrier.lifted():
                found = noun.rows().filter(**{noun.key: key}).first()
        elif noun.read is not None:
            found = noun.read(key, by)
        else:
            found = noun.seen_by(by).filter(**{noun.key: key}).first()
    except (ValueError, OverflowError, DataError, ValidationError):
        # No row can have this key, such as one with NUL.
        found = None
    if found is None:
        raise NotFound(noun.name)
    return found


def refuse_unless(noun: Noun, action: Action, row: Any, *, by: Access) -> None:
    """Raise AccessDenied unless the caller has the action's scope and permission for a row."""
    refuse_without_scope(by, action.scope, noun.owner_of(row))
    refuse_without_permission(by, action.permission)


def refuse_without_scope(by: Access, scope: Scope, owner_id: int | None) -> None:
    """Raise AccessDenied unless the caller has a scope for an owner; None: for all owners."""
    if not by.has(scope, owner_id):
        where = "this owner" if owner_id is not None else "the whole installation"
        raise AccessDenied(scope.value, where)


def refuse_without_permission(by: Access, permission: str) -> None:
    """Raise PermissionMissing unless Django's permissions allow it; a token has its maker's."""
    if not _permits(by, permission):
        raise PermissionMissing(permission, is_token=isinstance(by.actor, ApiToken))


def may_create(noun: Noun, *, by: Access) -> bool:
    """Say whether the caller can create a row of a noun for some owner."""
    creation = noun.creation
    is_everywhere = noun.owner == "pk"
    may = by.has(Scope.ADMIN) if is_everywhere else by.has_somewhere(Scope.ADMIN)
    return creation is not None and may and _permits(by, creation.permission)


def create(noun: Noun, body: BaseModel, *, owner: Owner | None, by: Access) -> Done:
    """Create a row of a noun for an owner, or for all (None).

    Raises AccessDenied, and what the verb raises: OptionError with the field of the body.
    """
    creation = creation_of(noun)
    refuse_without_scope(by, Scope.ADMIN, None if owner is None else owner.pk)
    refuse_without_permission(by, creation.permission)
    with barrier.lifted():
        if owner is not None:
            owner.refresh_from_db()
        value = creation.make(body, owner, by.actor)
        row = creation.row(value)
        return Done(row=row, body=body, value=value, text=creation.done(row, value))


def available(noun: Noun, row: Any, *, by: Access) -> list[Action]:
    """Return the actions that the caller can perform on a row now."""
    owner_id = noun.owner_of(row)
    allowed = [
        one for one in noun.actions if by.has(one.scope, owner_id) and _permits(by, one.permission)
    ]
    with barrier.lifted():
        return offered_of(allowed, row, noun.rows())


def may_somewhere(action: Action, *, by: Access) -> bool:
    """Say whether the caller can perform an action on rows of some owner."""
    return _permits(by, action.permission) and by.has_somewhere(action.scope)


def perform(
    noun: Noun,
    action: Action,
    key: Any,
    body: BaseModel,
    *,
    by: Access,
    once: str | None = None,
    is_version: Callable[[Any], bool] | None = None,
) -> Done:
    """Perform an action on the row with this key; return what it did.

    `once` is an idempotency key. `is_version` says whether a locked row is the version that the
    caller has read. Raises NotFound, AccessDenied, StaleRow; ActionRefused if the action does not
    apply; LimitExceeded; and what the verb raises, OptionError with the field of the body.
    """
    found = find(noun, key, by=by)
    refuse_unless(noun, action, found, by=by)
    with barrier.lifted(), _locked(noun, action, found) as row:
        if is_version is not None and not is_version(row):
            raise StaleRow(noun.name)
        if not action.applies_to(row, noun.rows()):
            refusal = phrase(action.refused, row=str(row))
            if action.is_repeatable:
                return Done(row=row, body=body, value=None, text=refusal)
            raise ActionRefused(refusal, action.conflict)
        count = None if action.adds is None else action.adds(row, body)
        if getattr(body, "dry_run", False):
            return Done(row=row, body=body, value=None, text="", count=count)
        if count is not None:
            refuse_more_runs(row.owner_id, adding=count)
        value = action.act(row, Call(body=body, actor=by.actor, once=once))
        return Done(row=row, body=body, value=value, text=action.done(row, value), count=count)


def find_all(noun: Noun, action: Action, rows: Any, *, by: Access) -> list[OwnedKey]:
    """Return those of these rows on which the caller can perform an action now, oldest first."""
    if not _permits(by, action.permission) or (noun.owner is None and not by.has(action.scope)):
        return []
    if noun.owner is not None:
        rows = by.narrowed(rows, path=noun.owner, scope=action.scope)
    # They are narrowed already. Behind the barrier, the index of labels would not be used.
    with barrier.lifted():
        found = find_rows(action.narrows(rows), owner=noun.owner)
    if noun.owner is None:
        return found
    # guard: behind the barrier, owners of others do not exist
    seen = Owner.objects.filter(pk__in={one.owner_id for one in found})
    keys = {*seen.values_list("pk", flat=True), *([None] if by.has(action.scope) else [])}
    return [one for one in found if one.owner_id in keys]


def perform_on_all(
    noun: Noun,
    action: Action,
    found: Sequence[OwnedKey],
    body: BaseModel,
    *,
    by: Access,
    once: str | None = None,
    is_version: Callable[[Any], bool] | None = None,
) -> Moved:
    """Perform an action on rows that `find_all` has found, until BUDGET_SECONDS; return how many.

    Raises what the verb raises about the body. Without `act_on_all`, a refusal of one row does not
    keep others from being moved.
    """
    if action.act_on_all is not None:
        with barrier.lifted():
            return action.act_on_all(found, Call(body=body, actor=by.actor, once=once))
    until = time.monotonic() + BUDGET_SECONDS
    refusals: list[str] = []
    for place, one in enumerate(found):
        if place and time.monotonic() > until:
            return Moved(place - len(refusals), len(found) - place, "".join(refusals[:1]))
        with barrier.lifted():
            row = noun.rows().filter(pk=one.pk).first()
        key = f"{once}:{one.pk}" if once and action.takes_once else None
        try:
            row_key = getattr(row, noun.key, one.pk)
            perform(noun, action, row_key, body, by=by, once=key, is_version=is_version)
        except FairshiftError as error:
            refusals.append(f"{row}: {in_language(problem_of(error)[1])}")
    return Moved(len(found) - len(refusals), 0, "".join(refusals[:1]))


def problem_of(error: FairshiftError) -> tuple[str | None, str]:
    """Return the field of the body that an error is about, and the problem; None: no field."""
    match error:
        case ArgumentError() | PayloadTooLarge() | UnknownTask():
            return "arguments", str(error)
        case OptionError(option=field, problem=problem) | FieldError(field=field, problem=problem):
            return field, problem
        case ActionRefused(problem=problem):
            return None, problem
    return None, str(error)


@contextmanager
def _locked(noun: Noun, action: Action, found: Any) -> Iterator[Any]:
    if not action.locks:
        yield found
        return
    with noun.changing(found) if noun.changing else transaction.atomic():
        rows = noun.rows() if noun.changing else noun.rows().select_for_update(of=("self",))
        row = rows.filter(pk=found.pk).first()
        if row is None:
            # Deleted since it was found.
            raise NotFound(noun.name)
        yield row


def _permits(by: Access, permission: str) -> bool:
    # Permissions have no owner, and are not readable behind the barrier.
    with barrier.lifted():
        return by.permits(permission)
