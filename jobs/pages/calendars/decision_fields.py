"""A decision on a window, as fields of a form: all occurrences or one, and its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.calendars.hours import entry_of
from jobs.calendars.reads.occurrence_list import named_occurrences
from jobs.core.language import in_language
from jobs.models import Window
from jobs.pages.kit.until import UntilFields
from jobs.windows import in_words

OFFERED: Final = 20


class WhichFields(forms.Form):
    """Which occurrences: all, or one of the next."""

    occurrence = forms.ChoiceField(label=lazy("Which"), required=False)
    field_order: Any = ("occurrence", "until", "reason")

    announcement: Any = ""
    choices: Sequence[tuple[str, str]] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("", _("all of them")), *self.choices]
        self.fields["occurrence"].choices = choices  # type: ignore[attr-defined]


class StandingFields(UntilFields):
    """The end of an approval, or none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        until = self.fields["until"]
        until.label = _("Approved until")
        until.help_text = _("Later occurrences are not approved. Empty: without an end.")


Which = TypeVar("Which", bound=WhichFields)


def form_of(form: type[Which], window: Window) -> type[Which]:
    """Return the form for one window: it says when the window is, and offers the next times."""
    try:
        entry = entry_of(window)
        found = named_occurrences(entry, after=timezone.now(), count=OFFERED)
        choices = [(key, in_language(words)) for key, words in found]
        facts: dict[str, Any] = {"announcement": in_language(in_words(entry)), "choices": choices}
    # Rows may be written by raw SQL.
    except Exception as error:
        facts = {"announcement": _("cannot be read (%s)") % error}
    return type(f"{form.__name__}OfWindow", (form,), facts)


def decision_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a decision, from the cleaned data of a form."""
    occurrence = data.get("occurrence")
    found = {
        "reason": data.get("reason", ""),
        "occurrence_at": datetime.fromisoformat(occurrence) if occurrence else None,
    }
    return {**found, "expires_at": data["until"]} if "until" in data else found
