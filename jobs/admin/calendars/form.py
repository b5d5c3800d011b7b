"""The form of a calendar: its options, and what it applies to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteSelectMultiple
from django.db import models
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.admin.kit.stale_form import StaleCheckForm, digest
from jobs.models import Attachment, Calendar, Job, Owner, Scope, Target, TargetGroup
from jobs.models.access import access_of

OPTIONS: Final = ("cut_off_seconds", "end", "spread_seconds", "needs_approval", "four_eyes")
APPLIES_TO: Final[dict[str, type[models.Model]]] = {
    "owners": Owner,
    "jobs": Job,
    "targets": Target,
    "groups": TargetGroup,
}


def _field(name: str, label: Any) -> forms.ModelMultipleChoiceField:
    field: Any = Attachment._meta.get_field(name.removesuffix("s"))
    return forms.ModelMultipleChoiceField(
        queryset=APPLIES_TO[name]._default_manager.none(),
        required=False,
        label=label,
        widget=AutocompleteSelectMultiple(field, admin.site),
    )


class CalendarForm(StaleCheckForm):
    """A calendar and its attachments: the rows that it applies to."""

    user: ClassVar[Any] = None
    """Set by the admin: the person whose rows are offered."""

    owners = _field("owners", lazy("All runs of the owners"))
    jobs = _field("jobs", lazy("Jobs"))
    targets = _field("targets", lazy("Targets"))
    groups = _field("groups", lazy("Groups of targets"))

    class Meta:
        model = Calendar
        fields = ("owner", "name", *OPTIONS)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk is None:
            owner = self.data.get("owner") or self.initial.get("owner")
            self._offer(str(owner or ""))
            return
        self._offer(str(self.instance.owner_id or ""))
        for name in APPLIES_TO:
            if name in self.fields:
                self.initial[name] = list(attached_to(self.instance, name))

    def _offer(self, owner: str) -> None:
        """Offer rows of the calendar's owner; for a shared calendar, rows of all owners."""
        for name, to in APPLIES_TO.items():
            if name not in self.fields:
                continue
            rows, path = to._default_manager.all(), "pk" if to is Owner else "owner"
            rows = access_of(self.user).narrowed(rows, path=path, scope=Scope.ADMIN)
            if owner:
                is_key = owner.isascii() and owner.isdigit() and len(owner) < 19
                key = int(owner) if is_key else None
                rows = rows.filter(**{path: key})
            self.fields[name].queryset = rows  # type: ignore[attr-defined]

    def mark(self) -> str:
        calendar = self.instance
        options = [getattr(calendar, name) for name in ("owner_id", "name", *OPTIONS)]
        to = [sorted(attached_to(calendar, name)) for name in APPLIES_TO] if calendar.pk else []
        return digest([*options, *to])

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if "owner" not in self.fields:
            # Django does not check a unique constraint if the form lacks one of its fields.
            same = Calendar.objects.filter(name=cleaned.get("name"), owner=self.instance.owner)
            if same.exclude(pk=self.instance.pk).exists():
                self.add_error("name", _("There is a calendar of this name already."))
        return cleaned

    def changes(self) -> Iterator[tuple[str, set[Any], set[Any]]]:
        """Yield each kind, the rows to attach, and the keys of the rows to detach."""
        for name in APPLIES_TO:
            if name in self.cleaned_data:
                wanted = {row.pk: row for row in self.cleaned_data[name]}
                attached = set(attached_to(self.instance, name))
                new = {wanted[key] for key in wanted.keys() - attached}
                yield name, new, attached - wanted.keys()


def attached_to(calendar: Calendar, name: str) -> Any:
    """Return the keys of the owners, jobs, targets or groups that a calendar applies to."""
    column = f"{name.removesuffix('s')}_id"
    rows = calendar.attachments.filter(**{f"{column}__isnull": False})
    return rows.values_list(column, flat=True)
