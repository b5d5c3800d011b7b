"""Actions on calendars."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_noop as _

from jobs.actions.declared import Action, Noun, told
from jobs.calendars import changes
from jobs.calendars.visibility import visible_rows
from jobs.models import Calendar, Scope

CALENDARS: Final = Noun(
    name="calendar",
    rows=lambda: Calendar.objects.select_related("owner"),
    visible=visible_rows,
    view="jobs.view_calendar",
    actions=(
        Action(
            name="delete",
            label=_("Delete"),
            explains=_(
                "Its windows are deleted, too. What it applied to is open, unless other calendars"
                " close it."
            ),
            scope=Scope.ADMIN,
            permission="jobs.delete_calendar",
            act=lambda calendar, call: changes.delete(calendar, **call.audited),
            done=told(_("%(row)s is deleted.")),
            is_destructive=True,
            method="DELETE",
        ),
    ),
)
