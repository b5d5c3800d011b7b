"""The form of a plan; its data is the address."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from django import forms
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from jobs.core.errors import OptionError
from jobs.forecast.replay.changes import MOST_SECONDS, MOST_SLOTS, Changes, read_changes
from jobs.models.fields import no_nul

LIST_LIMIT: Final = 2_000
_LOCAL: Final = "%Y-%m-%dT%H:%M"
_FIELDS: Final = {"weight": "weights", "cap": "caps", "window": "windows"}


def _moment(label: Any) -> forms.DateTimeField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format=_LOCAL)
    return forms.DateTimeField(label=label, widget=widget)


def _lines(label: Any, help_text: Any) -> forms.CharField:
    return forms.CharField(
        label=label,
        required=False,
        max_length=LIST_LIMIT,
        validators=[no_nul],
        help_text=help_text,
        widget=forms.Textarea(attrs={"rows": 2}),
    )


class PlanForm(forms.Form):
    """The span, what is different, and an objective."""

    use_required_attribute = False

    start = _moment(_("From"))
    end = _moment(_("To"))
    slots = forms.IntegerField(
        label=_("Slots"),
        required=False,
        min_value=1,
        max_value=MOST_SLOTS,
        help_text=_("Empty: as many as were recorded."),
    )
    weight = _lines(_("Weights"), _("A line each: owner=2"))
    cap = _lines(_("Caps"), _("A line each: owner=5; 0 is no cap."))
    window = _lines(
        _("Windows"), _("A line each: calendar=mon-fri 22:00-06:00, or calendar=always")
    )
    seconds = forms.FloatField(
        label=_("Objective in seconds"),
        required=False,
        min_value=0.001,
        max_value=MOST_SECONDS,
        help_text=_("Finds how many slots it needs. Empty: it is not looked for."),
    )
    percent = forms.FloatField(
        label=_("Percent of the starts"), required=False, min_value=50, max_value=99.9
    )

    def __init__(self, given: QueryDict, *, now: datetime) -> None:
        # The forms' own initial values are not those of a form with data.
        self.is_asked = "start" in given
        end = timezone.localtime(now)
        first = {"end": end.strftime(_LOCAL), "percent": "95"}
        first["start"] = (end - timedelta(days=1)).strftime(_LOCAL)
        super().__init__(given if self.is_asked else first, auto_id="plan_%s", label_suffix="")

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        texts = {
            many: [line.strip() for line in data.get(one, "").splitlines() if line.strip()]
            for one, many in _FIELDS.items()
        }
        try:
            data["changes"] = read_changes(slots=data.get("slots"), **texts)
        except OptionError as error:
            self.refuse(error)
        return data

    @property
    def changes(self) -> Changes:
        found: Changes = self.cleaned_data["changes"]
        return found

    def refuse(self, error: OptionError) -> None:
        """Show a refusal at its field."""
        name = {"from": "start", "to": "end"}.get(error.option, error.option)
        self.add_error(name if name in self.fields else None, error.problem)
