"""Widgets of the admin's forms."""

from django import forms


def date_and_time(**time_attrs: str) -> forms.SplitDateTimeWidget:
    """Return the browser's own inputs of a date and a time; `step="1"` allows seconds."""
    return forms.SplitDateTimeWidget(
        date_attrs={"type": "date"},
        time_attrs={"type": "time", **time_attrs},
        date_format="%Y-%m-%d",
        time_format="%H:%M:%S",
    )
