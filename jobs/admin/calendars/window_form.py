"""The form of a window or freeze: all of its times are in its own zone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.dates import WEEKDAYS_ABBR
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.admin.kit.stale_form import StaleCheckForm, digest
from jobs.calendars.windows import check_amount
from jobs.core.errors import WindowError
from jobs.core.zones import zone_names
from jobs.models import Window
from jobs.models.fields import no_nul
from jobs.pages.kit.widgets import date_and_time
from jobs.windows import Effect, Entry, checked, text
from jobs.windows.rules import DAYS
from jobs.windows.wall_clock import moment_at, shown_at
from jobs.windows.words import length_in_words

REPEATS: Final = (
    (text.ONCE, lazy("once")),
    (text.DAILY, lazy("every day")),
    (text.WEEKLY, lazy("every week, on the days below")),
    (text.MONTHLY, lazy("every month, on the day of the first one (such as the 15th)")),
    (text.MONTHLY_BY_WEEKDAY, lazy("every month, on its weekday (such as the 2nd Tuesday)")),
    (text.BY_RULE, lazy("by a custom rule")),
)
WEEKDAYS: Final = tuple(zip(DAYS, WEEKDAYS_ABBR.values(), strict=True))
TIMES: Final = ("starts", "duration", "zone", "repeat", "weekdays", "rule")
EXCEPTIONS: Final = ("excluded", "added", "valid_from", "valid_until")
STORED: Final = ("effect", "starts", "duration_seconds", "zone", "rule", *EXCEPTIONS, "reason")
REPEATS_OF: Final = {"weekdays": text.WEEKLY, "rule": text.BY_RULE}
"""The recurrence that uses a field; the form's script hides it for other recurrences."""


class WallTime(forms.MultiValueField):
    """A date and a time without a zone."""

    def __init__(self, **kwargs: Any) -> None:
        widget = date_and_time(step="1")
        fields = (forms.DateField(), forms.TimeField())
        super().__init__(fields=fields, widget=widget, require_all_fields=True, **kwargs)

    def compress(self, data_list: Any) -> datetime | None:
        return datetime.combine(*data_list) if data_list else None


class WindowForm(StaleCheckForm):
    """A window or freeze, checked as a whole."""

    starts = WallTime(label=lazy("First one starts"), help_text=lazy("In its time zone."))
    duration = forms.CharField(
        label=lazy("Lasts"),
        max_length=40,
        help_text=lazy("Such as 6 h, 1 d 6 h, 90 min or 4:30, by the clock. It may pass midnight."),
    )
    zone = forms.CharField(
        label=lazy("Time zone"),
        max_length=64,
        help_text=lazy("An IANA name, such as Europe/Berlin."),
        widget=forms.TextInput(attrs={"list": "fs-zones", "autocomplete": "off"}),
    )
    repeat = forms.ChoiceField(label=lazy("Comes"), choices=REPEATS, initial=text.ONCE)
    weekdays = forms.MultipleChoiceField(
        label=lazy("On"), choices=WEEKDAYS, required=False, widget=forms.CheckboxSelectMultiple
    )
    rule = forms.CharField(
        label=lazy("Rule"),
        required=False,
        max_length=500,
        validators=[no_nul],
        help_text=lazy("An RRULE of RFC 5545, such as FREQ=MONTHLY;BYDAY=-1SA."),
        widget=forms.TextInput(attrs={"size": 60, "spellcheck": "false"}),
    )
    excluded = forms.CharField(
        label=lazy("But not on"),
        required=False,
        help_text=lazy("One a line: a day, 2026-12-24, or a day and time, 2026-12-24 22:00."),
        widget=forms.Textarea(attrs={"rows": 3, "cols": 30}),
    )
    added = forms.CharField(
        label=lazy("And also on"),
        required=False,
        help_text=lazy("The same."),
        widget=forms.Textarea(attrs={"rows": 3, "cols": 30}),
    )
    valid_from = WallTime(label=lazy("Valid from"), required=False)
    valid_until = WallTime(
        label=lazy("Valid until"), required=False, help_text=lazy("Later occurrences do not count.")
    )
    reason = forms.CharField(
        label=lazy("Reason"),
        required=False,
        max_length=500,
        validators=[no_nul],
        help_text=lazy("Shown in the month, and beside runs that wait for it."),
        widget=forms.TextInput(attrs={"size": 60}),
    )

    entry: Entry | None = None
    """The checked window; None until the form is valid."""

    class Meta:
        model = Window
        fields = ("calendar", "effect")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk is not None:
            self.initial.update(initial_of(self.instance))
        elif "zone" not in self.initial:
            self.initial["zone"] = self._usual_zone()

    def _usual_zone(self) -> str:
        """Return the zone of the calendar's owner, for a new window, or UTC."""
        key = str(self.initial.get("calendar") or "")
        if "calendar" not in self.fields or not (key.isascii() and key.isdigit()):
            return "UTC"
        # Only calendars that the person may choose, so that the zone reveals nothing of others.
        offered: Any = self.fields["calendar"]
        found = offered.queryset.filter(pk=min(int(key), 2**63 - 1), owner__isnull=False)
        return found.values_list("owner__zone", flat=True).first() or "UTC"

    @property
    def is_preview(self) -> bool:
        return "_preview" in self.data

    def is_valid(self) -> bool:
        return super().is_valid() and not self.is_preview

    def mark(self) -> str:
        return digest(getattr(self.instance, name) for name in STORED)

    # --- checks ------------------------------------------------------------------------------

    def clean_duration(self) -> timedelta:
        found = text.read_duration(self.cleaned_data["duration"])
        if found is None:
            raise ValidationError(_("Give a length such as 6 h, 1 d 6 h, 90 min or 4:30."))
        return found

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        # Checked first: the other fields are in this time zone.
        if cleaned.get("zone", "UTC") in zone_names():
            entry = self.entry = self._entry(cleaned)
            calendar = cleaned.get("calendar") or getattr(self.instance, "calendar", None)
            if entry is not None and calendar is not None:
                # A calendar's windows have a common limit of openings.
                self._refuse(lambda: check_amount(calendar, entry, instead_of=self.instance.pk))
        elif "zone" in cleaned:
            self._refuse(lambda: checked(_only_zone(cleaned["zone"])))
        return cleaned

    def _entry(self, cleaned: dict[str, Any]) -> Entry | None:
        needed = {"effect", "starts", "duration", "zone", "repeat", "rule", "valid_from"}
        if not needed | {"valid_until", "excluded", "added", "reason"} <= cleaned.keys():
            return None
        starts, zone = cleaned["starts"], cleaned["zone"]
        lists: dict[str, Any] = {}
        for name in ("excluded", "added"):
            lists[name], wrong = text.read_dates(cleaned[name], starts=starts)
            if wrong:
                self.add_error(name, _("“%s” is no date such as 2026-12-24.") % wrong[:40])
                return None
        rule = text.rule_of(
            cleaned["repeat"],
            starts=starts,
            weekdays=cleaned.get("weekdays", ()),
            rule=cleaned["rule"],
        )
        if cleaned["repeat"] == text.BY_RULE and not rule:
            self.add_error("rule", _("Give the rule, or choose “once”."))
            return None
        return self._refuse(
            lambda: checked(
                Entry(
                    Effect(cleaned["effect"]),
                    starts=starts,
                    duration=cleaned["duration"],
                    zone=zone,
                    rule=rule,
                    valid_from=_moment(cleaned["valid_from"], zone),
                    valid_until=_moment(cleaned["valid_until"], zone),
                    reason=cleaned["reason"],
                    **lists,
                )
            )
        )

    def _refuse(self, check: Callable[[], Entry | None]) -> Entry | None:
        """Return the result of a check; add its error to the field that it is about."""
        try:
            return check()
        except WindowError as error:
            self.add_error(self.field_of(error), error.problem)
            return None

    def field_of(self, error: WindowError) -> str | None:
        """Return the form field that an error is about; None if it is about no single field."""
        if error.field == "rule" and self.cleaned_data.get("repeat") != text.BY_RULE:
            return "repeat"
        return error.field if error.field in self.fields else None


def initial_of(window: Window) -> dict[str, Any]:
    """Return the form's values of a stored window; most are absent if it cannot be read."""
    try:
        starts = datetime.fromisoformat(window.starts)
        repeat, weekdays = text.repeat_of(window.rule, starts=starts)
        valid_from, valid_until = (
            shown_at(at, window.zone) if at else None
            for at in (window.valid_from, window.valid_until)
        )
    # Rows may be written by raw SQL.
    except Exception:
        return {"zone": window.zone, "rule": window.rule, "repeat": text.BY_RULE}
    return {
        "starts": starts,
        "duration": length_in_words(timedelta(seconds=window.duration_seconds)),
        "zone": window.zone,
        "repeat": repeat,
        "weekdays": weekdays,
        "rule": window.rule if repeat == text.BY_RULE else "",
        "excluded": text.dates_text(window.excluded),
        "added": text.dates_text(window.added),
        "valid_from": valid_from,
        "valid_until": valid_until,
        "reason": window.reason,
    }


def _moment(wall: datetime | None, zone: str) -> datetime | None:
    return None if wall is None else moment_at(wall, zone).astimezone(UTC)


def _only_zone(zone: str) -> Entry:
    any_time = datetime.fromisoformat("2026-01-01")
    return Entry(Effect.WINDOW, any_time, timedelta(hours=1), zone)
