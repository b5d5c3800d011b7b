"""The filter of runs: its data is the address of the list, of its verbs and of its exports."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import ValidationError
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from jobs.core.inputs import KEY_LIMIT, LABEL_LIMIT
from jobs.core.sql import now
from jobs.core.states import State
from jobs.pages.kit.lists import CURSOR, FilterForm
from jobs.pages.kit.visit import Visit
from jobs.runs.reads.choices import AGES, GROUPS, WORDS
from jobs.runs.reads.listing import RunFilter

ID_LIMIT: Final = 2**63 - 1
STATES: Final = (
    ("", _("any")),
    *((name, label) for name, (_states, label) in GROUPS.items()),
    *((state.value, word) for state, word in WORDS.items()),
)


def _moment(label: Any) -> forms.DateTimeField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    return forms.DateTimeField(label=label, widget=widget)


def _text(label: Any, *, most: int, hint: str = "") -> forms.CharField:
    widget = forms.TextInput(attrs={"size": 16, "placeholder": hint} if hint else {"size": 16})
    return forms.CharField(label=label, max_length=most, widget=widget)


class RunFilterForm(FilterForm):
    """The filters of a list of runs; a run must match all of them."""

    state = forms.ChoiceField(label=_("State"), choices=STATES)
    task = _text(_("Task"), most=255, hint="reports.build")
    job = _text(_("Job"), most=KEY_LIMIT)
    target = _text(_("Target"), most=LABEL_LIMIT)
    submission = forms.IntegerField(
        label=_("Submission"),
        min_value=1,
        max_value=ID_LIMIT,
        widget=forms.NumberInput(attrs={"size": 8}),
    )
    label = _text(_("Label"), most=2 * LABEL_LIMIT + 1, hint="site:berlin")
    error = _text(_("Error class"), most=LABEL_LIMIT, hint="builtins.ValueError")
    age = forms.ChoiceField(
        label=_("Submitted"),
        choices=[("", _("any time")), *((name, label) for name, (_span, label) in AGES.items())],
    )
    since = _moment(_("From"))
    before = _moment(_("Before"))

    def __init__(self, visit: Visit) -> None:
        super().__init__(visit)
        self.visit = visit

    def clean_label(self) -> str:
        label: str = self.cleaned_data["label"]
        if label and not label.partition(":")[0]:
            raise ValidationError(_("write it as name:value"))
        return label

    @property
    def is_narrow(self) -> bool:
        """Whether there is a filter or a chosen owner: verbs for all runs need one."""
        return self.is_set or self.visit.owner is not None

    @property
    def wanted(self) -> RunFilter:
        """The filter, once the form is valid."""
        given = self.cleaned_data
        name, _colon, value = given["label"].partition(":")
        return RunFilter(
            states=_states_of(given["state"]),
            owner=self.visit.owner.slug if self.visit.owner else None,
            labels={name: value} if name else {},
            after=self._first(),
            **{
                field: given[field] or None
                for field in ("job", "task", "target", "submission", "error", "before")
            },
        )

    @property
    def query(self) -> str:
        """The filter as the query of an address, without the place in the list."""
        found = self.visit.request.GET.copy()
        found.pop(CURSOR, None)
        return found.urlencode()

    @property
    def stored_query(self) -> str:
        """The fields of the filter that are set, and the chosen owner, in one order."""
        given = [(name, self.data.get(name, "").strip()) for name in ("owner", *self.fields)]
        return urlencode([(name, value) for name, value in given if value])

    def _first(self) -> datetime | None:
        age, since = self.cleaned_data["age"], self.cleaned_data["since"]
        moments = [now() - AGES[age][0]] if age else []
        return max([*moments, since] if since else moments, default=None)


def export_url(wanted: RunFilter, media: str) -> str:
    """Return the address at which the API exports the runs of a filter, as csv or ndjson."""
    given = {
        "format": media,
        "state": [state.value for state in wanted.states],
        "label": [f"{name}:{value}" for name, value in wanted.labels.items()],
        **{
            name: getattr(wanted, name)
            for name in ("owner", "job", "task", "target", "submission", "error")
        },
        "after": wanted.after and wanted.after.isoformat(),
        "before": wanted.before and wanted.before.isoformat(),
    }
    named = {name: value for name, value in given.items() if value not in (None, [])}
    return f"{reverse('jobs:api:export_runs')}?{urlencode(named, doseq=True)}"


def _states_of(name: str) -> list[State]:
    if name in GROUPS:
        return sorted(GROUPS[name][0])
    return [State(name)] if name else []
