"""Widgets of forms, here and in the admin."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _


def date_and_time(**time_attrs: str) -> forms.SplitDateTimeWidget:
    """Return the browser's own inputs of a date and a time; `step="1"` allows seconds."""
    # The label of the field is that of the date.
    attrs: dict[str, Any] = {"type": "time", "aria-label": _("Time"), **time_attrs}
    return forms.SplitDateTimeWidget(
        date_attrs={"type": "date"},
        time_attrs=attrs,
        date_format="%Y-%m-%d",
        time_format="%H:%M:%S",
    )
