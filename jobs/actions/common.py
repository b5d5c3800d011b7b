"""Actions that several nouns have: change, delete, and disable and enable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.utils.translation import gettext_noop as _
from pydantic import BaseModel

from jobs.actions.conditions import Rows
from jobs.actions.declared import Action, Call, initial_of, sentence
from jobs.models import Scope
from jobs.models.access import Access


def change(
    *,
    body: type[BaseModel],
    permission: str,
    explains: str,
    act: Callable[[Any, Call], Any],
    initial: Callable[[Any, Access], Mapping[str, Any]] | None = None,
) -> Action:
    """Return the action that changes the given fields of a row; admins of its owner perform it."""
    return Action(
        name="change",
        label=_("Change"),
        explains=explains,
        scope=Scope.ADMIN,
        permission=permission,
        body=body,
        initial=initial or partial(initial_of, body),
        act=act,
        done=sentence(_("%(row)s is changed.")),
        method="PATCH",
    )


def deletion(
    *, permission: str, explains: str, act: Callable[[Any, Call], Any], locks: bool = True
) -> Action:
    """Return the action that deletes a row; admins of its owner perform it."""
    return Action(
        name="delete",
        label=_("Delete"),
        explains=explains,
        scope=Scope.ADMIN,
        permission=permission,
        act=act,
        done=sentence(_("%(row)s is deleted.")),
        locks=locks,
        is_destructive=True,
        method="DELETE",
    )


def _switch(row: Any, call: Call, *, verb: Callable[..., Any], to: bool) -> None:
    verb(row, {"is_active": to}, **call.audited)


def enabled(rows: Rows) -> Rows:
    """Return the rows that are not disabled."""
    return rows.filter(is_active=True)


def disable_and_enable(
    declared: Callable[..., Action], verb: Callable[..., Any], *, off: str, on: str
) -> tuple[Action, Action]:
    """Return both actions; `declared` has their scope and permission, `off` and `on` explain them.

    `verb` changes fields of a row.
    """
    disable = declared(
        name="disable",
        label=_("Disable"),
        explains=off,
        applies=enabled,
        refused=_("%(row)s is disabled already."),
        is_repeatable=True,
        act=partial(_switch, verb=verb, to=False),
        done=sentence(_("%(row)s is disabled.")),
    )
    enable = declared(
        name="enable",
        label=_("Enable"),
        explains=on,
        applies=lambda rows: rows.filter(is_active=False),
        refused=_("%(row)s is enabled already."),
        is_repeatable=True,
        act=partial(_switch, verb=verb, to=True),
        done=sentence(_("%(row)s is enabled.")),
    )
    return disable, enable
