"""The declaration of an action, and of the noun that it belongs to.

Texts are English; `gettext_noop` marks them for `make messages`, and a page translates them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import reduce
from typing import Annotated, Any, Final

from django.db.models import Exists, Model
from django.utils.translation import gettext_noop as _
from pydantic import BaseModel, ConfigDict

from jobs.actions import texts
from jobs.actions.conditions import OfStates, Rows, every
from jobs.core import prepared
from jobs.core.phrases import Phrase, phrase
from jobs.models import Scope
from jobs.models.access import Access
from jobs.runs.bulk import Moved, OwnedKey


@dataclass(frozen=True, slots=True)
class Shown:
    """How a form shows a field of a body. A field without it is in no form."""

    label: str
    help: str = ""
    choices: Callable[[], Iterable[tuple[str, Any]]] | None = None
    """Return the values to choose from, each with its label; None: any value."""


HIDDEN: Final = object()
"""The initial value of a field that a caller may not see or change."""
REASON: Final = Shown(_("Reason"), _("Stored in the audit and shown in the history."))


class Reason(BaseModel):
    """The reason of an action."""

    model_config = ConfigDict(extra="forbid")

    reason: Annotated[texts.Reason, REASON] = ""


class NeededReason(Reason):
    """The reason of an action that needs one."""

    reason: Annotated[texts.NeededReason, REASON]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The arguments of an action."""

    body: Any
    actor: Any
    """The user or the API token that acts."""
    once: str | None
    """The idempotency key; None: a repetition acts again."""

    @property
    def given(self) -> dict[str, Any]:
        """The fields that the body has, without the reason."""
        fields: dict[str, Any] = self.body.model_dump(exclude={"reason"}, exclude_unset=True)
        return fields

    @property
    def audited(self) -> dict[str, Any]:
        """The actor and the reason, as the verbs take them."""
        return {"actor": self.actor, "reason": self.body.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """How a row of a noun is created, by admins of its owner."""

    label: str
    explains: str = ""
    permission: str
    body: type[BaseModel]
    """With `is_for_all` if a row may be for all owners. Its `owner` is for programs."""
    make: Callable[[Any, Any, Any], Any]
    """The verb of the domain: takes the body, the owner (None: all owners) and the actor."""
    row: Callable[[Any], Any] = lambda made: made
    """Return the row, of what `make` returned."""
    done: Callable[[Any, Any], Phrase]
    secret: Callable[[Any], str] | None = None

    @property
    def is_for_all(self) -> bool:
        """Whether a row can be for all owners."""
        return "is_for_all" in self.body.model_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    """A kind of rows, and its actions."""

    name: str
    """In the singular, as in `pause_owner`."""
    rows: Callable[[], Rows]
    key: str = "pk"
    """The field by which addresses name a row."""
    key_kind: str = "int"
    """Django's converter of that field in addresses: int, str or uuid."""
    owner: str | None = "owner"
    """The path from a row to its owner; None: rows belong to the whole installation."""
    read: Callable[[Any, Access], Any] | None = None
    """Return the row of a key that a caller sees, or None, faster than `rows` does."""
    visible: Callable[[Rows, Access], Rows] | None = None
    """Narrow rows to those that a caller sees; None: those of the caller's owners."""
    section: str = ""
    """The entry in the navigation that its pages belong to; empty: its plural."""
    shown_by: str = ""
    """The field with the row on whose page it is shown; empty: it has a page of its own."""
    view: str
    """Django's permission to see rows."""
    seen_with: tuple[Scope, ...] = (Scope.READ,)
    """The scopes of which each is enough to see a row."""
    title: Callable[[Any], str] = str
    """Return a row in words, for a page that asks."""
    seen: Callable[[Any], str] | None = None
    """Return a text that changes when a person must look at a row again before an action."""
    changing: Callable[[Any], AbstractContextManager[Any]] | None = None
    """Lock what an action on a row changes; None: the row."""
    actions: tuple[Action, ...]
    creation: Creation | None = None

    @property
    def plural(self) -> str:
        return f"{self.name}s"

    @property
    def path(self) -> str:
        """The noun in addresses."""
        return self.plural.replace("_", "-")

    @property
    def model_name(self) -> str:
        """The name of the model, as in addresses of the admin."""
        return str(self.rows().model._meta.model_name)

    def action(self, name: str) -> Action | None:
        """Return the action with this name."""
        return next((one for one in self.actions if one.name == name), None)

    def seen_by(self, access: Access) -> Rows:
        """Return the rows that a caller sees."""
        if self.visible is not None:
            return self.visible(self.rows(), access)
        if not access.everywhere.isdisjoint(self.seen_with):
            return self.rows()
        owners = frozenset[int]().union(*map(access.owner_ids, self.seen_with))
        return self.rows().filter(**{f"{self.owner}__in": owners})

    def owner_of(self, row: Any) -> int | None:
        """Return the id of a row's owner; None: the row belongs to the installation."""
        if self.owner is None:
            return None
        if self.owner == "pk":
            return row.pk
        *parents, last = self.owner.split("__")
        return getattr(reduce(getattr, parents, row), f"{last}_id")


def creation_of(noun: Noun) -> Creation:
    """Return how a row of a noun is created; the caller knows that it can be."""
    if noun.creation is None:
        raise TypeError(f"a {noun.name} is not created")
    return noun.creation


def initial_of(body: type[BaseModel], row: Any, _access: Access) -> dict[str, Any]:
    """Return a row's values of the fields of a body that a form has."""
    return {name: getattr(row, name) for name in shown_in(body) if name != "reason"}


def shown_in(body: type[BaseModel]) -> dict[str, Shown]:
    """Return how a form shows the fields of a body."""
    return {
        name: shown
        for name, info in body.model_fields.items()
        for shown in info.metadata
        if isinstance(shown, Shown)
    }


def sentence(template: str) -> Callable[[Any, Any], Phrase]:
    """Return what makes a phrase of a template with `row`, whatever the action returns."""
    return lambda row, _value: phrase(template, row=str(row))


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One action on a row of a noun."""

    name: str
    label: str
    explains: str
    """What it does, in one or two sentences."""
    scope: Scope
    permission: str
    act: Callable[[Any, Call], Any]
    """The verb of the domain: takes the locked row; what it returns is in `Done.value`."""
    body: type[BaseModel] = Reason
    applies: Callable[[Rows], Rows] = every
    """Narrow rows to those that the action can move now."""
    offered: Callable[[Rows], Rows] | None = None
    """Narrow rows to those for which faces offer it; None: all that it applies to."""
    refused: str = ""
    """A sentence with `row`, for a row that the action does not apply to."""
    is_repeatable: bool = False
    """True: on a row that it does not apply to, it changes nothing. False: it is a conflict."""
    conflict: str = "state_conflict"
    """The code of that conflict, for programs."""
    done: Callable[[Any, Any], Phrase]
    """What to say afterwards, of the row and of what `act` returned."""
    act_on_all: Callable[[Sequence[OwnedKey], Call], Moved] | None = None
    """Move many rows in chunks, audited as a whole; None: one row after the other."""
    body_of_all: type[BaseModel] | None = None
    """The body for many rows; None: that of one row."""
    adds: Callable[[Any, Any], int] | None = None
    """Return how many runs it adds to the row's owner, for the owner's limit of waiting runs.

    A body with `dry_run` is only counted; a form counts first, and asks again.
    """
    initial: Callable[[Any, Access], Mapping[str, Any]] | None = None
    """Return the values that the form of a row has at first, for a caller; HIDDEN: no such field.

    A field that the form leaves as it is is not in the body.
    """
    choices: Mapping[str, Callable[[Any], Sequence[tuple[str, str]]]] = field(default_factory=dict)
    """Fields for which the form of a row offers values, each with its text.

    The form of selected rows does not have them.
    """
    counts: Callable[[Any], int] | None = None
    """Return how many runs of a row it concerns, for the page that asks."""
    takes_once: bool = False
    """True: an idempotency key makes a repetition return what the first one made."""
    locks: bool = True
    """True: the row is locked while it acts."""
    is_destructive: bool = False
    method: str = "POST"
    """That of the API. PATCH changes the given fields, DELETE deletes the row: with If-Match."""
    secret: Callable[[Any], str] | None = None
    """Return the secret that it has made, of what `act` returned: a page shows it once."""

    @property
    def is_deletion(self) -> bool:
        return self.method == "DELETE"

    @property
    def is_counted(self) -> bool:
        """Whether a form shows how many runs it adds, and asks again."""
        return "dry_run" in self.body.model_fields

    @property
    def is_for_many(self) -> bool:
        """Whether it can be performed on many rows: its form is the same for each."""
        is_alike = not (self.is_counted or self.initial or self.secret)
        return self.body_of_all is not None or is_alike

    @property
    def many(self) -> type[BaseModel]:
        """The body for many rows."""
        return self.body_of_all or self.body

    @property
    def narrows(self) -> Callable[[Rows], Rows]:
        """Narrows rows to those for which faces offer it now."""
        return self.offered or self.applies

    def applies_to(self, row: Model, rows: Rows) -> bool:
        """Say whether it can move a row now."""
        return bool(fulfilled([self.applies], row, rows))


def offered_of(actions: Sequence[Action], row: Model, rows: Rows) -> list[Action]:
    """Return those of some actions that faces offer for a row now."""
    fits = fulfilled([action.narrows for action in actions], row, rows)
    return [action for action in actions if action.narrows in fits]


def fulfilled(
    conditions: Iterable[Callable[[Rows], Rows]], row: Model, rows: Rows
) -> set[Callable[[Rows], Rows]]:
    """Return those of some conditions that a row fulfils: by what was read, or by one query.

    Its plan is kept: to plan it over all partitions of runs takes longer than to run it.
    """
    judged = {
        one: one.judge(row) if isinstance(one, OfStates) else (one is every or None)
        for one in conditions
    }
    asked = [one for one, fits in judged.items() if fits is None]
    if asked:
        found = rows.filter(pk=row.pk)
        query = found.order_by().values_list(*(Exists(narrow(found)) for narrow in asked)).query
        for flags in prepared.query(*query.sql_with_params()):
            judged |= zip(asked, flags.values(), strict=True)
    return {one for one, fits in judged.items() if fits}
