"""The form of a job: its task, arguments, schedule and policies, checked as a whole."""

from __future__ import annotations

import json
from typing import Any, Final

from celery import current_app
from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.catalog.redaction import restored
from jobs.catalog.registry import offered
from jobs.core.conf import plain_queues
from jobs.core.errors import FairshiftError
from jobs.core.inputs import KEY_LIMIT
from jobs.definitions.fields import SCHEDULE
from jobs.definitions.placement import prepare
from jobs.definitions.present import arguments_of, shown_arguments_of
from jobs.definitions.spec import fault_of, job_spec
from jobs.models import Job
from jobs.pages.kit.body_form import json_object
from jobs.pages.kit.offers import NO_CHOICE, choice_of, hint_of
from jobs.schedules.expressions import LONGEST

MISFIRE_FIELDS: Final = ("misfire", "misfire_cap", "misfire_deadline_seconds")
HISTORY_FIELDS: Final = ("overlap", "history_policy")
POLICY_FIELDS: Final = (
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
KINDS_OF: Final = {
    "interval_minutes": "interval",
    "interval_seconds": "seconds",
    "cron": "cron",
    "once_at": "once",
    "start_at": "interval seconds cron",
    "end_at": "interval seconds cron",
    "smooth": "once cron",
}
"""For each field, the kinds of schedule that use it. The script hides the field for others."""


class JobForm(forms.ModelForm):
    """A job with its arguments, schedule and policies."""

    may_see_arguments = True
    """Set by the admin, by the person's permissions."""

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
            *SCHEDULE,
            *MISFIRE_FIELDS,
            *HISTORY_FIELDS,
            "queue",
            *POLICY_FIELDS,
            "lock_key",
        )
        widgets = {"labels": forms.Textarea(attrs={"rows": 3, "cols": 80})}
        help_texts = {
            "key": lazy("Your own name of the job, unique for the owner: 1 to %d characters.")
            % KEY_LIMIT,
            "interval_minutes": lazy("1 to 525,600. Fairshift chooses its minute and second."),
            "interval_seconds": lazy(
                "1 to 86,400. For a whole number of minutes use the interval in minutes."
            ),
            "cron": lazy(
                "Five fields, such as 5 4 * * MON-FRI, or @hourly, @daily, @weekly …"
                " At most %d characters."
            )
            % LONGEST,
            "once_at": lazy("A time with seconds is rounded up to the next minute."),
            "zone": lazy("An IANA name, such as Europe/Berlin. Empty: UTC."),
            "smooth": lazy("Starts are spread over the minute, not all in its first second."),
            "misfire": lazy("Due times that are not run are recorded as missed."),
            "misfire_cap": lazy("For “run all”: the number of newest due times to run."),
            "misfire_deadline_seconds": lazy(
                "Due times that are missed by more than this are not run. Empty: no limit."
            ),
            "retry_on": lazy(
                "Names of exceptions, separated by commas, with or without their module:"
                " ConnectionError, requests.exceptions.Timeout. Empty: all."
            ),
            "give_up_on": lazy("Names as above: no further attempt after these."),
            "overlap": lazy(
                "What to do when a run is due while an earlier one is open. Needs history."
            ),
            "history_policy": lazy(
                "With “none” there are no rows: no retry history, no durable cancel, no last "
                "results, and a due run is only as durable as the broker."
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._offers = {item.name: item for item in offered()}
        if "task" in self.fields:
            choices = [NO_CHOICE, *map(choice_of, self._offers.values())]
            if self.instance.task and self.instance.task not in self._offers:
                choices.append((self.instance.task, self.instance.task))
            self.fields["task"].choices = choices  # type: ignore[attr-defined]
        if "queue" in self.fields:
            text = _("Empty: the default queue. Known queues: %s.")
            self.fields["queue"].help_text = text % ", ".join(_queues())
        if "arguments" in self.fields:
            self._show_arguments()

    def _show_arguments(self) -> None:
        field = self.fields["arguments"]
        hint = hint_of(self._offers, self.data.get("task") or self.instance.task)
        field.help_text = _("A JSON object of argument names and values. ") + hint
        if self.instance.pk is None:
            self.initial["arguments"] = "{}"
        elif not self.may_see_arguments:
            field.help_text = _("Hidden from you. Empty: they stay as they are.")
        else:
            try:
                self.initial["arguments"] = stored_arguments(self.instance)
            # Rows may be written by raw SQL or with a key that is not here: the form still opens.
            except Exception as error:
                field.help_text = _("The stored arguments cannot be read (%s).") % error

    # --- checks ------------------------------------------------------------------------------

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        self._check_target(cleaned)
        self._empty_unused(cleaned)
        given = {name: _given(cleaned.get(name)) for name in SPEC_FIELDS}
        given["key"] = cleaned.get("key") or self.instance.key or "-"
        given["arguments"] = self._arguments(cleaned)
        spec, faults = job_spec(given)
        # A field with an error is checked with its default here: an error about that is left out.
        known = set(self.errors)
        for field, problem in map(fault_of, faults):
            name = field.partition(".")[0]
            if name not in known:
                self.add_error(name if name in self.fields else None, problem)
        if spec is not None:
            cleaned |= {name: spec.columns[name] for name in SCHEDULE}
            cleaned["payload"] = spec.payload
        return cleaned

    def _check_target(self, cleaned: dict[str, Any]) -> None:
        owner = cleaned.get("owner") or (self.instance.owner if self.instance.pk else None)
        target = cleaned.get("target")
        if target is not None and owner is not None and target.owner_id != owner.pk:
            self.add_error("target", _("This target belongs to another owner."))

    def _empty_unused(self, cleaned: dict[str, Any]) -> None:
        """Empty the unchanged fields that belong to another kind of schedule.

        A changed field keeps its value and is refused later, so that no input is lost in silence.
        """
        for name, kinds in KINDS_OF.items():
            is_unchanged = name in cleaned and name not in self.changed_data
            if is_unchanged and cleaned.get("schedule") not in kinds.split():
                empty: Any = {"smooth": False, "cron": ""}
                cleaned[name] = empty.get(name)

    def _arguments(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        text = cleaned.get("arguments") or ""
        try:
            if not text.strip() and self.instance.pk is not None and not self.may_see_arguments:
                given = shown_arguments_of(self.instance)
            else:
                given = json_object(text)
            return given if self.instance.pk is None else self._restored(given, cleaned)
        except (FairshiftError, LookupError, ValueError) as error:
            if "arguments" in self.fields:
                self.add_error("arguments", str(error))
            return {}

    def _restored(self, given: dict[str, Any], cleaned: dict[str, Any]) -> Any:
        return restored(
            given,
            _stored(self.instance),
            task=self.instance.task,
            may_keep=False,
            is_same_task=cleaned.get("task") in (None, self.instance.task),
        )

    def save(self, commit: bool = True) -> Job:
        prepare(self.instance, payload=self.cleaned_data["payload"])
        job: Job = super().save(commit)
        return job


SPEC_FIELDS: Final = tuple(
    name for name in JobForm.Meta.fields if name not in {"owner", "key", "target"}
)
"""The fields that `job_spec` checks. The form checks the owner and the target, which are rows."""


def stored_arguments(job: Job) -> str:
    """Return a job's arguments by name, as JSON that the form reads back."""
    return json.dumps(shown_arguments_of(job), indent=2, ensure_ascii=False, default=str)


def _stored(job: Job) -> dict[str, Any]:
    """Return a job's arguments, which fill in hidden values; {} if they cannot be read."""
    try:
        return arguments_of(job)
    except (FairshiftError, LookupError, ValueError):
        return {}


def _given(value: Any) -> Any:
    """Return a field's value as `job_spec` takes it: None if it is empty."""
    return None if value in (None, "", [], ()) else value


def _queues() -> list[str]:
    return sorted(set(current_app.amqp.queues) - plain_queues())
