"""The end of a pause or of an approval, as fields of a form: here and in the admin."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from jobs.core.sql import now
from jobs.pages.kit.widgets import date_and_time


class UntilFields(forms.Form):
    """An end in the future, or none."""

    until = forms.SplitDateTimeField(
        label=_("Until"),
        required=False,
        help_text=_("Empty: until a person resumes it."),
        widget=date_and_time(),
    )
    field_order: Any = ("until", "reason")

    def clean_until(self) -> Any:
        until = self.cleaned_data["until"]
        if until is not None and until <= now():
            raise forms.ValidationError(_("This time is in the past."))
        return until
