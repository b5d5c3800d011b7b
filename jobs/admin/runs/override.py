"""Starting runs outside their windows: the verbs, and a run's page on who used them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import ngettext

from jobs.actions.runs import that_obey_windows
from jobs.admin.kit import html
from jobs.admin.kit.verbs import Act, ReasonForm, Verb
from jobs.models import AuditEntry, Run, WindowPolicy
from jobs.runs.override import held_by, override_windows


class RequiredReasonForm(ReasonForm):
    """A reason, which is required."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].required = True


def _override(keys: Sequence[UUID], act: Act) -> int:
    return override_windows(keys, actor=act.actor, reason=act.reason)


def _with_holding(text: str, row: Run) -> str:
    """Return a message with the shared calendars that hold a run despite an override."""
    holding = held_by([row.pk])
    if not holding:
        return text
    held = ngettext(
        "The shared calendar %(calendars)s still holds it: only superusers override that.",
        "The shared calendars %(calendars)s still hold it: only superusers override them.",
        len(holding),
    )
    return f"{text} {held % {'calendars': ', '.join(holding)}}"


def _done(row: Run, _act: Act) -> str:
    text = _("%(row)s: %(done)s.") % {"row": row, "done": OVERRIDE.done}
    return _with_holding(text, row)


def _refused(text: Any) -> Callable[[Run], str]:
    return lambda row: _with_holding(str(text), row)


OVERRIDE = Verb(
    name="override",
    label=lazy("Override windows"),
    permission="jobs.override_window",
    applies=that_obey_windows,
    act=_override,
    done=lazy("let start outside their windows"),
    refused=_refused(lazy("This run does not wait, or may start outside its windows already.")),
    warning=lazy(
        "They start despite their owner's calendars and freezes. Shared calendars still hold them "
        "unless a superuser overrides. Limits of owners and locks still apply."
    ),
    form=RequiredReasonForm,
    message=_done,
)


def overridden_in_words(run: Run) -> Any:
    """Return who let a run start outside its windows, when and why; empty if nobody did."""
    if run.window_policy not in {WindowPolicy.OVERRIDDEN, WindowPolicy.SHARED}:
        return ""
    entries = AuditEntry.objects.filter(
        object_type="run", object_id=str(run.pk), action="override windows"
    )
    entry = entries.order_by("-pk").first()
    if entry is None:
        return _("windows overridden")
    actor = _("windows overridden by %(who)s") % {"who": entry.actor_name}
    return format_html("{} {}: {}", actor, html.moment(entry.at), entry.reason)
