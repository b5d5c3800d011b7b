"""Disable and enable: the actions on rows with `is_active`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.utils.translation import gettext_noop as _

from jobs.actions.conditions import Rows
from jobs.actions.declared import Action, Call, sentence


def _switch(row: Any, call: Call, *, change: Callable[..., Any], to: bool) -> None:
    change(row, {"is_active": to}, **call.audited)


def enabled(rows: Rows) -> Rows:
    """Return the rows that are not disabled."""
    return rows.filter(is_active=True)


def disable_and_enable(
    declared: Callable[..., Action], change: Callable[..., Any], *, off: str, on: str
) -> tuple[Action, Action]:
    """Return both actions; `declared` has their scope and permission, `off` and `on` explain them.

    `change` is the verb that changes fields of a row.
    """
    disable = declared(
        name="disable",
        label=_("Disable"),
        explains=off,
        applies=enabled,
        refused=_("%(row)s is disabled already."),
        is_repeatable=True,
        act=partial(_switch, change=change, to=False),
        done=sentence(_("%(row)s is disabled.")),
    )
    enable = declared(
        name="enable",
        label=_("Enable"),
        explains=on,
        applies=lambda rows: rows.filter(is_active=False),
        refused=_("%(row)s is enabled already."),
        is_repeatable=True,
        act=partial(_switch, change=change, to=True),
        done=sentence(_("%(row)s is enabled.")),
    )
    return disable, enable
