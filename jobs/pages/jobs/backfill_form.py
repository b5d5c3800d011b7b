"""The range of a backfill, as fields of a form: it is typed, then counted, then confirmed."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from jobs.core.errors import OptionError, ScheduleError
from jobs.models import Job
from jobs.pages.kit.numbers import number
from jobs.pages.kit.widgets import date_and_time
from jobs.recurring.backfill import count_backfill


class BackfillFields(forms.Form):
    """A range of the past. Valid only after the form has shown the number of runs."""

    job: ClassVar[Job]
    data: Any
    announcement: Any = ""

    start = forms.SplitDateTimeField(label=_("From"), widget=date_and_time(step="1"))
    end = forms.SplitDateTimeField(label=_("Until"), widget=date_and_time(step="1"))
    counted = forms.CharField(required=False, widget=forms.HiddenInput)
    field_order: Any = ("start", "end", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        zone = timezone.get_current_timezone_name()
        self.fields["start"].help_text = gettext("In your zone, %s.") % zone
        self.fields["end"].help_text = gettext("Not included; not in the future.")

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        start, end = cleaned.get("start"), cleaned.get("end")
        if start is None or end is None:
            return cleaned
        try:
            count = count_backfill(self.job, start, end)
        except OptionError as error:
            self.add_error(error.option if error.option in self.fields else None, error.problem)
        except ScheduleError as error:
            self.add_error(None, str(error))
        else:
            self._require_shown(f"{start.isoformat()} {end.isoformat()} {count}", count)
        return cleaned

    def _require_shown(self, facts: str, count: int) -> None:
        """Announce the count, unless the form before showed this range with this count.

        A changed count may mean a changed schedule, so it is confirmed anew.
        """
        name = self.add_prefix("counted")
        if self.data.get(name) != facts:
            self.data = {**self.data.dict(), name: facts}
            text = ngettext("This makes %s run.", "This makes %s runs.", count) % number(count)
            self.announcement = text + gettext(" Confirm it with the same button.")

    def is_valid(self) -> bool:
        return super().is_valid() and not self.announcement
