"""Verbs: what an operator does to one row or to many, always after a confirmation page.

The button on a row's page and the bulk action of a list are the same verb. The confirmation page
changes nothing. Its form has a signed field that says what it shows: a form that is too old, or
whose row has changed since, is shown again and has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from django import forms
from django.core import signing
from django.db import models
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.core.inputs import REASON_LIMIT
from jobs.models.fields import no_nul

SALT: Final = "fairshift.admin.verb"
AGE_SECONDS: Final = 900


class ReasonForm(forms.Form):
    """A reason, for the audit and the history of the runs."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=REASON_LIMIT,
        required=False,
        validators=[no_nul],
        help_text=_("Stored in the audit and shown in the history."),
        widget=forms.TextInput(attrs={"size": 60, "autofocus": True}),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """The arguments of a confirmed verb."""

    actor: Any
    data: dict[str, Any]
    """The cleaned data of the confirmed form."""
    results: list[Any] = field(default_factory=list)
    """Filled by the verb, for its message."""
    is_bulk: bool
    """True: the bulk is audited as a whole, so its rows need no entries."""

    @property
    def reason(self) -> str:
        return self.data.get("reason", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One action of an operator."""

    name: str
    label: Any
    permission: str
    applies: Callable[[Any], models.QuerySet[Any]] = field(default=lambda rows: rows)
    """Narrow rows to those that the verb can act on now."""
    act: Callable[[Sequence[Any], Act], int]
    """Act on the rows with these keys; return how many have changed."""
    done: Any
    """The past participle in the message of a success, such as "cancelled"."""
    refused: Callable[[Any], Any]
    """The message about a row that the verb cannot act on."""
    warning: Any = ""
    form: type[forms.Form] = ReasonForm
    form_of: Callable[[Any], type[forms.Form]] | None = None
    """Makes the form of a row, when it depends on the row."""
    mark: Callable[[Any], str] = field(default=lambda _row: "")
    """The facts of a row that must be unchanged when its form is confirmed."""
    audits_bulk: bool = False
    """True: a bulk writes one audit entry for each owner. False: `act` writes its own entries."""
    message: Callable[[Any, Act], Any] | None = None
    """The message of a success with one row, instead of the usual one."""

    def form_for(self, row: Any) -> type[forms.Form]:
        """Return the form that asks about one row."""
        return self.form_of(row) if self.form_of is not None else self.form


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """What a confirmation page showed."""

    mark: str = ""
    until: str = ""
    """The last key of the selection: later rows were not shown, and stay unchanged."""
    after: str = ""
    """The last key that was acted on, when the time limit came before the end."""

    def left_of(self, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Narrow the selected rows to those that were shown and not yet acted on."""
        shown = rows.filter(pk__lte=self.until)
        return shown.filter(pk__gt=self.after) if self.after else shown


def always(text: Any) -> Callable[[Any], Any]:
    """Return a function that gives every row the same text."""
    return lambda _row: text


def sign(verb: Verb, request: HttpRequest, shown: Confirmed) -> str:
    """Return the signed field of a confirmation page."""
    return signing.dumps([verb.name, str(request.user.pk), asdict(shown)], salt=SALT)


def unsign(verb: Verb, request: HttpRequest, text: str) -> Confirmed | None:
    """Read the signed field; None if it is forged, of another person or verb, or too old."""
    try:
        name, user, facts = signing.loads(text, salt=SALT, max_age=AGE_SECONDS)
        shown = Confirmed(**facts)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    return shown if (name, user) == (verb.name, str(request.user.pk)) else None
