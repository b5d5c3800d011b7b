"""The form of an action, drawn from its body: a field for each that has `Shown`."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin

from django import forms
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pydantic import AwareDatetime, BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from jobs.actions import HIDDEN, Shown, shown_in
from jobs.core.conf import setting
from jobs.core.language import in_language
from jobs.core.strict_json import JsonError, parse
from jobs.models.fields import no_nul
from jobs.pages.kit.widgets import date_and_time

LIMITS: Final = {"max_length": "max_length", "ge": "min_value", "le": "max_value"}
"""The names of pydantic's limits, and those of Django's fields."""


def json_object(text: str) -> dict[str, Any]:
    """Return a JSON object; {} for a blank text. The ValueError says what is wrong."""
    if not text.strip():
        return {}
    try:
        found = parse(text.encode(), max_depth=setting("API_MAX_DEPTH"))
    except JsonError as error:
        where = f"{error.field}: " if error.field else ""
        raise ValueError(f"{where}{error.problem}") from None
    if not isinstance(found, dict):
        raise ValueError(gettext("write a JSON object of names and values"))  # noqa: TRY004
    return found


class JsonField(forms.CharField):
    """A JSON object as text; None for a blank text."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        try:
            return json_object(text) if text.strip() else None
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None

    def has_changed(self, initial: Any, data: Any) -> bool:
        return str(initial or "").split() != str(data or "").split()


class ListField(forms.CharField):
    """Texts, separated by commas."""

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        return _parts(super().clean(value))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return _parts(data or "") != list(initial or ())


class BodyForm(forms.Form):
    """The fields of a body. Valid only if the body is valid, too, which is `body` then."""

    model: type[BaseModel]
    body: Any = None
    data: Any
    initial: Any
    announcement: Any = ""

    once = forms.CharField(
        required=False, max_length=64, initial=secrets.token_urlsafe, widget=forms.HiddenInput
    )
    """A key by which a form that is sent twice acts once."""
    counted = forms.CharField(required=False, widget=forms.HiddenInput)
    """What the form before showed: a count, or of many rows the last key."""
    seen = forms.CharField(required=False, widget=forms.HiddenInput)
    """What the visitor has seen of the row, or of many rows with their keys."""
    back = forms.CharField(required=False, widget=forms.HiddenInput)
    """The page that asked for it."""

    def __init__(self, data: Any, *, initial: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, initial=dict(initial or {}))
        for name in [name for name, value in self.initial.items() if value is HIDDEN]:
            del self.fields[name], self.initial[name]
        zone = gettext("In your zone, %s.") % timezone.get_current_timezone_name()
        for field in self.fields.values():
            if isinstance(field, forms.SplitDateTimeField):
                field.help_text = f"{field.help_text} {zone}".strip()

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        same = {name for name in self.initial if name not in self.changed_data}
        own = ((name, cleaned.get(name)) for name in self.model.model_fields if name not in same)
        given = {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in own
            if name in self.initial or value not in (None, "")
        }
        if self.errors:
            return cleaned
        try:
            self.body = self.model(**given)
        except ValidationError as error:
            for fault in error.errors():
                self.refuse(str(fault["loc"][0]), fault["msg"].removeprefix("Value error, "))
        return cleaned

    def refuse(self, field: str | None, problem: Any) -> None:
        """Show a problem at its field, or above all if the form does not have it."""
        self.add_error(field if field in self.fields else None, problem)


def form_of(
    body: type[BaseModel],
    choices: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    *,
    without: Collection[str] = (),
) -> type[BodyForm]:
    """Return the form of a body, with choices for some fields, and without some."""
    offered = choices or {}
    fields = {
        name: _choice(shown, offered[name])
        if name in offered
        else _field(body.model_fields[name], shown)
        for name, shown in shown_in(body).items()
        if name not in without
    }
    order = [*(name for name in fields if name != "reason"), "reason"]
    own = {"model": body, "field_order": order, **fields}
    return type(f"{body.__name__}Form", (BodyForm,), own)


def _parts(text: str) -> list[str]:
    return [part for each in text.split(",") if (part := each.strip())]


def _choice(shown: Shown, offered: Sequence[tuple[str, str]]) -> forms.Field:
    choices = [(value, in_language(text)) for value, text in offered]
    return forms.ChoiceField(label=_(shown.label), required=False, choices=choices)


def _field(info: FieldInfo, shown: Shown) -> forms.Field:
    given: dict[str, Any] = {
        "label": capfirst(_(shown.label)),
        "help_text": _(shown.help) if shown.help else "",
        "required": info.is_required(),
    }
    if info.default not in (PydanticUndefined, None, ""):
        given["initial"] = info.default
    kind = kind_of(info.annotation)
    if shown.choices is not None:
        if kind in (list, set):
            boxes = forms.CheckboxSelectMultiple
            return forms.MultipleChoiceField(**given, choices=shown.choices, widget=boxes)
        return forms.ChoiceField(**given, choices=shown.choices)
    if kind is list:
        return ListField(**given, validators=[no_nul])
    for limit in info.metadata:
        for theirs, ours in LIMITS.items():
            if (value := getattr(limit, theirs, None)) is not None:
                given[ours] = value
    if kind is dict:
        attrs = {"rows": 8, "class": "mono", "spellcheck": "false"}
        return JsonField(**given, strip=False, widget=forms.Textarea(attrs=attrs))
    if kind in (datetime, AwareDatetime):
        return forms.SplitDateTimeField(**given, widget=date_and_time(step="1"))
    if kind is bool:
        return forms.BooleanField(**{**given, "required": False})
    if kind in (int, float):
        return (forms.IntegerField if kind is int else forms.FloatField)(**given)
    text = forms.TextInput(attrs={"size": 60, "autofocus": True})
    return forms.CharField(**given, validators=[no_nul], widget=text)


def kind_of(annotation: Any) -> Any:
    """Return the type of a field that may be None."""
    while get_origin(annotation) in (Union, UnionType) or hasattr(annotation, "__metadata__"):
        found = [one for one in get_args(annotation) if one is not NoneType]
        annotation = found[0]
    return get_origin(annotation) or annotation
