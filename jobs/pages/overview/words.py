"""Why no more of an owner runs now, in a few words. Pure."""

from __future__ import annotations

from typing import NamedTuple

from django.utils.translation import gettext as _

from fleet import OwnerState
from jobs.owners.standing import Standing


class Why(NamedTuple):
    """A word for a pill."""

    word: str
    sign: str
    tone: str


def why_now(one: Standing) -> Why:
    """Return what an owner's runs wait for now."""
    if one.owner.is_paused():
        reason = one.owner.paused_reason
        return Why(_("paused: %s") % reason if reason else _("paused"), "‖", "held")
    seen = one.seen
    if seen is None:
        if one.entitled is None:
            return Why(_("unknown: Redis does not answer"), "?", "idle")
        return Why(_("nothing to do"), "–", "idle")
    match seen.state:
        case OwnerState.PAUSED:
            return Why(_("paused"), "‖", "held")
        case OwnerState.AT_CAP:
            return Why(_("at its cap of %s") % seen.max_running, "▲", "warn")
        case OwnerState.RESTING:
            rest = _("over its rate, next in %s s") % f"{seen.rest_seconds or 0:.0f}"
            return Why(rest, "▲", "warn")
        case OwnerState.ELIGIBLE:
            return Why(_("takes turns"), "●", "good")
    return Why(_("nothing waits"), "–", "idle")
