"""The form of a bulk: one task for many targets of an owner, checked field by field."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.catalog.placeholders import TARGET_LIMIT
from jobs.catalog.registry import offered, resolve
from jobs.core.errors import ArgumentError, BatchError, FairshiftError, OptionError
from jobs.core.inputs import refuse_labels, refuse_name
from jobs.models import Owner, Scope, Target, TargetGroup, WindowPolicy
from jobs.models.fields import no_nul
from jobs.pages.kit.body_form import JsonField
from jobs.pages.kit.offers import NO_CHOICE, choice_of, hint_of
from jobs.pages.kit.visit import Visit
from jobs.rollouts.waves import APPROVAL, LONGEST, Waves, counts_of, limit_from, sizes_from
from jobs.runs import preparation
from jobs.runs.preparation import BATCH_LIMIT, LABEL_LIMIT

TARGET: Final = "{target}"
"""Placeholder for a target's name in the arguments, also inside a longer text."""
BYTES_LIMIT: Final = 64 * 2**20
"""Limit of the arguments of all runs, in bytes: the web process has them in memory at once."""
OPTIONS: Final = ("priority", "deadline_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bulk:
    """The bulk to submit: a run for each target, with the target's name in the arguments."""

    owner: Owner
    task: str
    arguments: dict[str, Any]
    targets: tuple[str, ...]
    label: str = ""
    waves: Waves | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def calls(self) -> Iterator[dict[str, Any]]:
        """The arguments of each run."""
        return (_filled(self.arguments, name) for name in self.targets)

    @property
    def mark(self) -> str:
        """A digest: only a bulk with the mark of the one that was shown is submitted."""
        facts = [self.owner.pk, self.task, self.arguments, self.targets, self.label, self.options]
        facts.append(repr(self.waves))
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


class SubmitForm(forms.Form):
    """An owner, a task, its arguments, targets and options."""

    owner = forms.ModelChoiceField(
        label=lazy("Owner"), queryset=Owner.objects.none(), to_field_name="slug"
    )
    task = forms.ChoiceField(label=lazy("Task"))
    arguments = JsonField(
        label=lazy("Arguments"),
        strip=False,
        widget=forms.Textarea(
            attrs={
                "rows": 5,
                "cols": 80,
                "spellcheck": "false",
                "placeholder": f'{{"device": "{TARGET}", "version": 7}}',
            }
        ),
    )
    group = forms.ModelChoiceField(
        label=lazy("Targets of a group"), queryset=TargetGroup.objects.none(), required=False
    )
    filter = forms.CharField(
        label=lazy("Or those whose names contain"),
        required=False,
        max_length=200,
        validators=[no_nul],
    )
    labels = JsonField(
        label=lazy("Or whose labels are"),
        required=False,
        help_text=lazy('A JSON object, such as {"site": "berlin"}. With a name, both must match.'),
        widget=forms.TextInput(attrs={"size": 60, "spellcheck": "false"}),
    )
    names = forms.CharField(
        label=lazy("Or these"),
        required=False,
        validators=[no_nul],
        help_text=lazy("One name a line. New targets are created."),
        widget=forms.Textarea(attrs={"rows": 6, "cols": 60, "spellcheck": "false"}),
    )
    label = forms.CharField(
        label=lazy("Label"), required=False, max_length=LABEL_LIMIT, validators=[no_nul]
    )
    priority = forms.IntegerField(
        label=lazy("Priority"), required=False, help_text=lazy("0 to 9, higher first.")
    )
    deadline_seconds = forms.FloatField(
        label=lazy("Deadline in seconds"),
        required=False,
        help_text=lazy("Runs that have not started by then expire."),
    )
    window = forms.BooleanField(
        label=lazy("Window required"),
        required=False,
        help_text=lazy("Refused unless a calendar applies to each target."),
    )
    sizes = forms.CharField(
        label=lazy("Waves"),
        required=False,
        max_length=LABEL_LIMIT,
        validators=[no_nul],
        help_text=lazy(
            "Counts, or parts of all runs: 1, 1%, 10%, 100%. Empty: all runs go out at once."
        ),
    )
    stop_at = forms.CharField(
        label=lazy("Stop at"),
        required=False,
        max_length=10,
        help_text=lazy(
            "More failed runs of a wave stop the rest: a count, or a part of its ended runs as 5%."
        ),
    )
    between_seconds = forms.IntegerField(
        label=lazy("Seconds between waves"),
        required=False,
        min_value=1,
        max_value=int(LONGEST.total_seconds()),
    )
    approval = forms.BooleanField(label=lazy("Each wave needs an approval"), required=False)
    spread = forms.CharField(
        label=lazy("Spread by"),
        required=False,
        max_length=LABEL_LIMIT,
        validators=[no_nul],
        help_text=lazy("A label of targets, such as site: one run of each comes first."),
    )
    once = forms.CharField(widget=forms.HiddenInput, max_length=64)
    foreseen = forms.CharField(widget=forms.HiddenInput, max_length=64, required=False)

    bulk: Bulk

    def __init__(self, *args: Any, visit: Visit, **kwargs: Any) -> None:
        """Offer the owners for whom the person may submit, and their groups."""
        super().__init__(*args, **kwargs)
        offers = {item.name: item for item in offered()}
        fields: Any = self.fields
        owners = visit.rows(Owner.objects.order_by("slug"), path="pk")
        groups = TargetGroup.objects.select_related("owner").order_by("owner__slug", "name")
        by, scope = visit.access, Scope.SUBMIT
        fields["owner"].queryset = by.narrowed(owners, path="pk", scope=scope)
        fields["group"].queryset = by.narrowed(visit.rows(groups), scope=scope)
        # Read at once: a cursor of the server's does not work behind the barrier.
        slugs = [(owner.slug, str(owner)) for owner in list(fields["owner"].queryset)]
        named = [(one.pk, f"{one.owner}: {one.name}") for one in list(fields["group"].queryset)]
        fields["owner"].choices = [NO_CHOICE, *slugs]
        fields["group"].choices = [NO_CHOICE, *named]
        fields["task"].choices = [NO_CHOICE, *map(choice_of, offers.values())]
        text = _("A JSON object of argument names and values; %s in a text is the target's name.")
        fields["arguments"].help_text = f"{text % TARGET} {hint_of(offers, self.data.get('task'))}"

    @property
    def is_foreseen(self) -> bool:
        """Whether the forecast that the form has shown is of what it submits."""
        return bool(self.cleaned_data["foreseen"] == self.bulk.mark)

    # --- checks ------------------------------------------------------------------------------

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        owner, task = cleaned.get("owner"), cleaned.get("task")
        options = self._options(cleaned)
        targets = () if owner is None else self._targets(owner, cleaned)
        arguments = cleaned.get("arguments") or {}
        if "arguments" not in self.errors and _filled(arguments, "") == arguments:
            problem = _('A text in them must contain "%s", which gives the task its target.')
            self.add_error("arguments", problem % TARGET)
        waves = self._waves(cleaned, len(targets))
        if owner is None or task is None or self.errors:
            return cleaned
        self.bulk = Bulk(
            owner=owner,
            task=task,
            arguments=arguments,
            targets=targets,
            label=cleaned["label"],
            waves=waves,
            options=options,
        )
        try:
            for name in targets:
                refuse_name("target", name, most=TARGET_LIMIT)
            call = _filled(arguments, max(targets, key=lambda name: len(json.dumps(name))))
            longest = preparation.encode_payload(resolve(task), (), call, embed={})
            if len(longest) * len(targets) > BYTES_LIMIT:
                problem = _("For %(count)s targets these are more than %(limit)s MB together.")
                facts = {"count": f"{len(targets):,}", "limit": BYTES_LIMIT // 2**20}
                self.add_error("arguments", problem % facts)
        except FairshiftError as error:
            self.refuse(error)
        return cleaned

    def refuse(self, error: FairshiftError) -> None:
        """Add the error of a submit to the field that it is about."""
        if isinstance(error, BatchError):
            index, first = error.problems[0]
            more = _(" (of target %s)") % self.bulk.targets[index]
            self.add_error("arguments", f"{first}{more}")
        elif isinstance(error, ArgumentError):
            self.add_error("arguments", f"{error.field}: {error.problem}")
        elif isinstance(error, OptionError) and error.option in self.fields:
            self.add_error(error.option, error.problem)
        elif isinstance(error, OptionError) and error.option.startswith("waves."):
            field = error.option.removeprefix("waves.").partition("[")[0]
            self.add_error({"between": "between_seconds"}.get(field, field), error.problem)
        elif isinstance(error, OptionError) and error.option == "target":
            self.add_error("names", error.problem)
        else:
            self.add_error(None, str(error))

    def _options(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        given = {name: cleaned[name] for name in OPTIONS if cleaned.get(name) is not None}
        if cleaned.get("window"):
            given["window"] = WindowPolicy.REQUIRED.value
        for name, value in given.items():
            try:
                preparation.checked_options({name: value})
            except OptionError as error:
                self.refuse(error)
        return given

    def _waves(self, cleaned: dict[str, Any], total: int) -> Waves | None:
        seconds, needs = cleaned.get("between_seconds"), cleaned.get("approval")
        if not cleaned.get("sizes"):
            for name in ("stop_at", "between_seconds", "approval", "spread"):
                if cleaned.get(name):
                    self.add_error(name, _("This is for waves."))
            return None
        if seconds and needs:
            self.add_error("approval", _("Give a time or an approval, not both."))
        try:
            waves = Waves(
                sizes=sizes_from(cleaned["sizes"]),
                stop_at=limit_from(cleaned.get("stop_at", "")),
                between=APPROVAL if needs else seconds and timedelta(seconds=seconds),
                spread=cleaned.get("spread", ""),
            )
            counts_of(waves.sizes, total)
        except OptionError as error:
            self.refuse(error)
            return None
        return waves

    def _targets(self, owner: Owner, cleaned: dict[str, Any]) -> tuple[str, ...]:
        group, names = cleaned.get("group"), cleaned.get("names", "").split("\n")
        names = [name.strip() for name in names if name.strip()]
        is_filter = bool(cleaned.get("filter") or cleaned.get("labels"))
        if (group is not None) + is_filter + bool(names) != 1:
            self.add_error("group", _("Give exactly one: a group, a filter, or names."))
            return ()
        if group is not None and group.owner_id != owner.pk:
            self.add_error("group", _("This group belongs to another owner."))
            return ()
        if names:
            field, found = "names", list(dict.fromkeys(names))
        else:
            rows = Target.objects.filter(owner=owner)
            field = "filter" if group is None else "group"
            rows = self._filtered(rows, cleaned) if group is None else rows.filter(groups=group)
            found = list(rows.order_by("name").values_list("name", flat=True)[: BATCH_LIMIT + 1])
        if not found:
            self.add_error(field, _("There are no such targets."))
        elif len(found) > BATCH_LIMIT:
            problem = _("More than %s targets: submit them in parts.") % f"{BATCH_LIMIT:,}"
            self.add_error(field, problem)
        return tuple(found)

    def _filtered(self, rows: Any, cleaned: dict[str, Any]) -> Any:
        if cleaned.get("filter"):
            rows = rows.filter(name__contains=cleaned["filter"])
        if cleaned.get("labels"):
            try:
                refuse_labels(cleaned["labels"])
            except OptionError as error:
                self.add_error("labels", str(error))
                return rows.none()
            rows = rows.filter(labels__contains=cleaned["labels"])
        return rows


def _filled(value: Any, name: str) -> Any:
    """Return arguments with the target's name in place of TARGET."""
    if isinstance(value, str):
        return value.replace(TARGET, name)
    if isinstance(value, dict):
        return {key: _filled(one, name) for key, one in value.items()}
    return [_filled(one, name) for one in value] if isinstance(value, list) else value
