"""Verbs: what an operator does to one row or to many, always through a page that confirms it.

The button on a row's page and the bulk action of a list are the same verb. Looking at the
confirmation changes nothing; what it confirmed is signed into its form, so that one that
has grown old, or that shows a row which has moved since, is shown again instead of obeyed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django import forms
from django.core import signing
from django.db import models
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from jobs.models.fields import no_nul

SALT: Final = "fairshift.admin.verb"
AGE_SECONDS: Final = 900
REASON_LIMIT: Final = 200


class ReasonForm(forms.Form):
    """Why: kept in the audit, and in the history of the runs."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=REASON_LIMIT,
        required=False,
        validators=[no_nul],
        help_text=_("Kept in the audit and shown in the history."),
        widget=forms.TextInput(attrs={"size": 60, "autofocus": True}),
    )


class UntilForm(ReasonForm):
    """Until when, and why. Empty: until resumed."""

    until = forms.SplitDateTimeField(
        label=_("Until"),
        required=False,
        help_text=_("Empty: until a person resumes it."),
        widget=forms.SplitDateTimeWidget(
            date_attrs={"type": "date"}, time_attrs={"type": "time"}, date_format="%Y-%m-%d"
        ),
    )
    field_order = ("until", "reason")

    def clean_until(self) -> Any:
        until = self.cleaned_data["until"]
        if until is not None and until <= timezone.now():
            raise forms.ValidationError(_("This time has passed already."))
        return until


class CertainUntilForm(UntilForm):
    """Until when, which must be said, and why."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["until"].required = True
        self.fields["until"].help_text = _("To stop it without an end, take away “enabled”.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What a confirmed verb is called with."""

    actor: Any
    reason: str
    data: dict[str, Any]
    nonce: str
    """The same for every repetition of one confirmed form: a double click acts once."""
    results: list[Any] = field(default_factory=list)
    """What the verb leaves for its message."""
    is_bulk: bool
    """True: the bulk is audited as a whole, so the single rows need no entry."""

    def key_of(self, row: models.Model) -> str:
        """Return the idempotency key of what this form does to a row."""
        return f"admin:{self.nonce}:{row.pk}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One thing that an operator may do."""

    name: str
    label: Any
    permission: str
    applies: Callable[[Any], models.QuerySet[Any]] = field(default=lambda rows: rows)
    """Narrow rows to those on which it can be done now."""
    act: Callable[[Sequence[Any], Act], int]
    """Do it to the rows with these keys; return how many were moved."""
    done: Any
    """What is said of a success, as "cancelled"."""
    refused: Callable[[Any], Any]
    """What is said of one row on which it cannot be done."""
    warning: Any = ""
    form: type[forms.Form] = ReasonForm
    form_of: Callable[[Any], type[forms.Form]] | None = None
    """Makes the form of a row, where it must know the row."""
    is_for_many: bool = True
    """False: it is no action of a list."""
    mark: Callable[[Any], str] = field(default=lambda _row: "")
    """What of a single row must still be the same when the form comes back."""
    audits_bulk: bool = False
    """True: a bulk writes one entry an owner; else each row writes its own."""
    message: Callable[[Any, Act], Any] | None = None
    """What is said after one row, instead of the usual."""

    def form_for(self, row: Any) -> type[forms.Form]:
        """Return the form that asks about one row."""
        return self.form_of(row) if self.form_of is not None else self.form


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """What the form was shown for."""

    nonce: str
    mark: str
    until: str
    """The last key of the selection: what came later was not seen, and is not touched."""
    after: str = ""
    """The last key that is done, when there was no time for all."""

    def left_of(self, rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """Narrow the selected rows to those that were seen and are not done."""
        seen = rows.filter(pk__lte=self.until)
        return seen.filter(pk__gt=self.after) if self.after else seen


def always(text: Any) -> Callable[[Any], Any]:
    """Return what says the same of every row."""
    return lambda _row: text


def fresh(*, mark: str = "", until: str = "") -> Confirmed:
    """Return what a new confirmation page is shown for."""
    return Confirmed(nonce=secrets.token_urlsafe(12), mark=mark, until=until)


def sign(verb: Verb, request: HttpRequest, shown: Confirmed) -> str:
    """Return the hidden field of a confirmation page."""
    facts = [verb.name, request.user.pk, shown.nonce, shown.mark, shown.until, shown.after]
    return signing.dumps(facts, salt=SALT)


def unsign(verb: Verb, request: HttpRequest, text: str) -> Confirmed | None:
    """Read it back; None when it is forged, of another person or verb, or too old."""
    try:
        name, user, *facts = signing.loads(text, salt=SALT, max_age=AGE_SECONDS)
        nonce, mark, until, after = facts
    except (signing.BadSignature, ValueError, TypeError):
        return None
    if name != verb.name or user != request.user.pk:
        return None
    return Confirmed(nonce=nonce, mark=mark, until=until, after=after)
