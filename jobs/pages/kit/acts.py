"""Verbs of pages: a form asks for a reason, then the verb acts, then a page says what happened."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponseRedirect
from django.utils.translation import gettext_lazy as _

from jobs.core.inputs import REASON_LIMIT
from jobs.models.fields import no_nul
from jobs.pages.kit.visit import Visit


class ReasonForm(forms.Form):
    """A reason, for the history and the audit. Forms of verbs with more fields extend it."""

    reason = forms.CharField(
        label=_("Reason"),
        max_length=REASON_LIMIT,
        required=False,
        validators=[no_nul],
        help_text=_("Stored in the audit and shown in the history."),
        widget=forms.TextInput(attrs={"size": 60, "autofocus": True}),
    )


def done(visit: Visit, text: Any, *, to: str) -> HttpResponseRedirect:
    """Return the answer of a verb that has acted: a message, shown on the page at `to`."""
    messages.success(visit.request, text)
    return HttpResponseRedirect(to)


def failed(visit: Visit, text: Any, *, to: str) -> HttpResponseRedirect:
    """Return the answer of a verb that was refused: the reason, shown on the page at `to`."""
    messages.error(visit.request, text)
    return HttpResponseRedirect(to)
