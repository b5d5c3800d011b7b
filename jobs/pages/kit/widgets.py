"""Widgets of forms, here and in the admin."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _


class DateAndTime(forms.SplitDateTimeWidget):
    """Two inputs; the label of the field is that of the date."""

    def id_for_label(self, id_: str) -> str:
        return f"{id_}_0" if id_ else id_


def date_and_time(**time_attrs: str) -> forms.SplitDateTimeWidget:
    """Return the browser's own inputs of a date and a time; `step="1"` allows seconds."""
    attrs: dict[str, Any] = {"type": "time", "aria-label": _("Time"), **time_attrs}
    return DateAndTime(
        date_attrs={"type": "date"},
        time_attrs=attrs,
        date_format="%Y-%m-%d",
        time_format="%H:%M:%S",
    )
