"""The form of a job: its arguments are checked against the task's signature when it is saved."""

from __future__ import annotations

import json
from typing import Any

from celery import current_app
from django import forms
from django.utils.translation import gettext as _

from jobs.arguments import ArgumentSchema, encode_body
from jobs.catalog import OfferedTask, offered, resolve
from jobs.conf import setting
from jobs.errors import ArgumentError, FairshiftError, OptionError
from jobs.models import Job
from jobs.options import Options
from jobs.payloads import CLEAR, read_body

POLICY_FIELDS = (
    "priority",
    "max_attempts",
    "backoff_seconds",
    "backoff_cap_seconds",
    "soft_time_limit_seconds",
    "time_limit_seconds",
    "deadline_seconds",
    "retry_on",
    "give_up_on",
)
HINTS = 10


class JobForm(forms.ModelForm):
    """A job without its schedule: what fires jobs by the clock is not there yet."""

    may_see_arguments = True
    """Set by the admin for the person who asks."""

    task = forms.ChoiceField(label=_("Task"))
    arguments = forms.CharField(
        label=_("Arguments"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 8, "cols": 80, "spellcheck": "false"}),
    )

    class Meta:
        model = Job
        fields = (
            "owner",
            "key",
            "name",
            "enabled",
            "task",
            "target",
            "labels",
            "queue",
            *POLICY_FIELDS,
            "lock_key",
        )
        widgets = {"labels": forms.Textarea(attrs={"rows": 3, "cols": 80})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._offers = {item.name: item for item in offered()}
        if "task" in self.fields:
            choices = [(name, _choice(item)) for name, item in self._offers.items()]
            if self.instance.task and self.instance.task not in self._offers:
                choices.append((self.instance.task, self.instance.task))
            self.fields["task"].choices = [("", "---------"), *choices]  # type: ignore[attr-defined]
        if "queue" in self.fields:
            self.fields["queue"].help_text = _("Empty: the usual one. Known are: %s.") % ", ".join(
                _queues()
            )
        if "arguments" in self.fields:
            self._show_arguments()

    def _show_arguments(self) -> None:
        field = self.fields["arguments"]
        field.help_text = _("A JSON object of argument names and values. ") + self._hint()
        if self.instance.pk is None:
            self.initial["arguments"] = "{}"
        elif not self.may_see_arguments:
            field.help_text = _("Hidden from you. Empty: they stay as they are.")
        else:
            try:
                self.initial["arguments"] = stored_arguments(self.instance)
            # Stored by other hands, or with a key that is not here: the form must still open.
            except Exception as error:
                field.help_text = _("The stored arguments cannot be read (%s).") % error

    def _hint(self) -> str:
        """Say what the chosen task takes; before one is chosen, what each takes."""
        chosen = self._offers.get(self.data.get("task") or self.instance.task)
        shown = [chosen] if chosen else list(self._offers.values())[:HINTS]
        return " ".join(_takes(item) for item in shown)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        self._check_target(cleaned)
        self._check_options(cleaned)
        if cleaned.get("task") and "arguments" in self.fields and "arguments" not in self.errors:
            self._check_arguments(cleaned)
        return cleaned

    def _check_target(self, cleaned: dict[str, Any]) -> None:
        owner = cleaned.get("owner") or (self.instance.owner if self.instance.pk else None)
        target = cleaned.get("target")
        if target is not None and owner is not None and target.owner_id != owner.pk:
            self.add_error("target", _("This target belongs to another owner."))

    def _check_options(self, cleaned: dict[str, Any]) -> None:
        """Refuse now what a run of this job would be refused for."""
        queue = cleaned.get("queue") or ""
        if queue and queue not in _queues():
            self.add_error("queue", _("Known are: %s.") % ", ".join(_queues()))
        policy: dict[str, Any] = {name: cleaned.get(name) for name in POLICY_FIELDS}
        for name in ("retry_on", "give_up_on"):
            policy[name] = tuple(policy[name] or ()) or None
        try:
            Options(
                labels=cleaned.get("labels") or {}, lock=cleaned.get("lock_key") or "", **policy
            )
        except OptionError as error:
            name = {"lock": "lock_key"}.get(error.option, error.option.partition(".")[0])
            self.add_error(name if name in self.fields else None, str(error))

    def _check_arguments(self, cleaned: dict[str, Any]) -> None:
        text = cleaned.get("arguments") or ""
        try:
            task = resolve(cleaned["task"])
            schema = ArgumentSchema.of(task)
            if not text.strip() and self.instance.pk is not None and not self.may_see_arguments:
                args, kwargs = read_body(self.instance.payload, key=self.instance.payload_key)
            else:
                args, kwargs = [], _parsed(text)
            bound_args, bound_kwargs = schema.bind(args, kwargs)
            cleaned["payload"] = encode_body(
                bound_args,
                bound_kwargs,
                max_bytes=setting("PAYLOAD_MAX_BYTES"),
                positional=schema.positional,
            )
        except ArgumentError as error:
            self.add_error("arguments", f"{error.field}: {error.problem}")
        except (FairshiftError, LookupError, ValueError) as error:
            self.add_error("arguments", str(error))

    def save(self, commit: bool = True) -> Job:
        payload = self.cleaned_data.get("payload")
        if payload is not None:
            self.instance.payload = payload
            self.instance.payload_key = CLEAR
        job: Job = super().save(commit)
        return job


def stored_arguments(job: Job) -> str:
    """Return a job's arguments by name, as JSON that the form takes back."""
    args, kwargs = read_body(job.payload, key=job.payload_key)
    if args:
        schema = ArgumentSchema.of(resolve(job.task))
        rest = args[len(schema.positional) :]
        kwargs = {**dict(zip(schema.positional, args, strict=False)), **kwargs}
        if rest and schema.rest:
            kwargs[schema.rest] = rest
    return json.dumps(kwargs, indent=2, ensure_ascii=False, default=str)


def _parsed(text: str) -> dict[str, Any]:
    """Read a JSON object; raise ValueError, which says where it is wrong."""
    if not text.strip():
        return {}
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise ValueError(
            _("This is not JSON: %(problem)s, in line %(line)d, column %(column)d.")
            % {"problem": error.msg, "line": error.lineno, "column": error.colno}
        ) from None
    except RecursionError:
        raise ValueError(_("This is nested too deeply.")) from None
    if not isinstance(value, dict):
        raise ValueError(  # noqa: TRY004  a wrong value of a field, not of a call
            _("This is JSON, but not an object of names and values: {…}.")
        )
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(_("%s is given twice.") % twice)
    return made


def _constant(name: str) -> Any:
    raise ValueError(_("%s is no JSON.") % name)


def _choice(item: OfferedTask) -> str:
    return f"{item.offer.title} ({item.name})"


def _takes(item: OfferedTask) -> str:
    """Return the arguments of a task, those that must be given marked by a star."""
    schema = ArgumentSchema.of(item.task)
    fields = schema.model.model_fields
    names = [
        f"{name}*" if fields[field].is_required() else name for field, name in schema.fields.items()
    ]
    return _("%(task)s takes %(names)s.") % {
        "task": item.offer.title,
        "names": ", ".join(names) or _("nothing"),
    }


def _queues() -> list[str]:
    return sorted(name for name in current_app.amqp.queues if name != setting("SYSTEM_QUEUE"))
