"""The verbs that approve, reject and revoke all occurrences of a window, or a coming one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from django import forms
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.admin.kit.verbs import Act, ReasonForm, UntilForm, Verb, always
from jobs.calendars import approvals
from jobs.calendars.hours import entry_of
from jobs.calendars.reads.occurrence_list import clock, next_occurrences
from jobs.calendars.reads.window_state import needing_approval, to_be_approved, with_approval
from jobs.models import Window, WindowDecision
from jobs.windows import Entry, in_words

OFFERED: Final = 20


class WhichForm(ReasonForm):
    """Which occurrences: all, or one of the next."""

    occurrence = forms.ChoiceField(label=lazy("Which"), required=False)
    field_order: Any = ("occurrence", "until", "reason")

    announcement: Any = ""
    choices: Sequence[tuple[str, str]] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("", _("all of them")), *self.choices]
        self.fields["occurrence"].choices = choices  # type: ignore[attr-defined]


class StandingForm(UntilForm):
    """All occurrences, and the end of the approval."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        until = self.fields["until"]
        until.label = _("Approved until")
        until.help_text = _("Later occurrences are not approved. Empty: without an end.")


class ApproveForm(WhichForm, StandingForm):
    """All occurrences, with an end of the approval, or one."""

    field_order = WhichForm.field_order


def _form_of(form: type[WhichForm]) -> Callable[[Window], type[WhichForm]]:
    def made(window: Window) -> type[WhichForm]:
        try:
            entry = entry_of(window)
            facts = {"announcement": in_words(entry), "choices": _next_of(entry)}
        # Rows may be written by raw SQL.
        except Exception as error:
            facts = {"announcement": _("cannot be read (%s)") % error}
        return type(f"{form.__name__}OfWindow", (form,), facts)

    return made


def _next_of(entry: Entry) -> list[tuple[str, str]]:
    zone = ZoneInfo(entry.zone)
    found = next_occurrences(entry, after=timezone.now(), count=OFFERED)
    # An approval names an occurrence by the start of the whole occurrence, in UTC.
    return [(one.start.astimezone(UTC).isoformat(), clock(one.span, zone)) for one in found]


def _decide(decide: Callable[..., WindowDecision]) -> Callable[[Sequence[int], Act], int]:
    def act(keys: Sequence[int], act: Act) -> int:
        """Decide on all windows, or on none if one is refused."""
        occurrence = act.data.get("occurrence")
        at = datetime.fromisoformat(occurrence) if occurrence else None
        given = {"actor": act.actor, "reason": act.reason, "occurrence_at": at}
        if "until" in act.data:
            given["expires_at"] = act.data["until"]
        with transaction.atomic():
            windows = Window.objects.select_related("calendar").filter(pk__in=keys)
            return len([decide(window, **given) for window in windows.order_by("pk")])

    return act


def _mark(window: Window) -> str:
    newest = window.decisions.order_by("-pk").values_list("pk", flat=True).first()
    return f"{window.revision} {newest or 0}"


APPROVE = Verb(
    name="approve",
    label=lazy("Approve"),
    permission=approvals.PERMISSION,
    applies=needing_approval,
    act=_decide(approvals.approve),
    done=lazy("approved"),
    refused=always(lazy("This needs no approval.")),
    warning=lazy(
        "Waiting runs may start in it. A change that may open more needs a new approval;"
        " a change that only narrows it does not."
    ),
    form=StandingForm,
    form_of=_form_of(ApproveForm),
    mark=_mark,
)
REJECT = Verb(
    name="reject",
    label=lazy("Reject"),
    permission=approvals.PERMISSION,
    applies=to_be_approved,
    act=_decide(approvals.reject),
    done=lazy("rejected"),
    refused=always(lazy("This is decided already, or needs no approval.")),
    form_of=_form_of(WhichForm),
    mark=_mark,
)
REVOKE = Verb(
    name="revoke",
    label=lazy("Revoke"),
    permission=approvals.PERMISSION,
    applies=with_approval,
    act=_decide(approvals.revoke),
    done=lazy("revoked"),
    refused=always(lazy("This is not approved.")),
    warning=lazy("It no longer counts. Its active runs end as the calendar says for a close."),
    form_of=_form_of(WhichForm),
    mark=_mark,
)
