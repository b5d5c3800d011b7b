"""Why an owner's runs start or wait now, in words."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from fleet import OwnerState
from jobs.core.language import number
from jobs.models import Owner
from jobs.owners.work import OwnerWork
from jobs.pages.kit import times
from jobs.pages.kit.pieces import pill


def now_pill(owner: Owner, standing: OwnerWork) -> SafeString:
    """Return the state of an owner as a sign and a word."""
    match standing.state:
        case OwnerState.PAUSED:
            return pill(_("paused"), sign="‖", tone="held")
        case OwnerState.AT_CAP:
            return pill(_("at its cap of %s") % _number(owner.max_running), sign="▲", tone="warn")
        case OwnerState.RESTING:
            return pill(_("over its rate"), sign="▲", tone="warn")
        case OwnerState.ELIGIBLE:
            return pill(_("eligible"), sign="●", tone="good")
        case OwnerState.IDLE if standing.running:
            return pill(_("running"), sign="▶", tone="busy")
        case OwnerState.IDLE:
            return pill(_("idle"), sign="○", tone="idle")
    return pill(_("unknown"), sign="?", tone="idle")


def why_now(owner: Owner, standing: OwnerWork) -> Any:
    """Say in a sentence why the owner's next run starts, or does not."""
    match standing.state:
        case OwnerState.PAUSED:
            if owner.paused_until is None:
                text: Any = _("Paused: no run starts.")
            else:
                # The page shows it as an element, so it is no parameter of the sentence.
                until = times.minute(owner.paused_until)
                text = format_html("{} {}.", _("No run starts until"), until)
            if not owner.paused_reason:
                return text
            return format_html("{} {}: {}", text, _("Reason"), owner.paused_reason)
        case OwnerState.AT_CAP:
            text = _("As many of its runs are active as its cap allows: %s. The others wait.")
            return text % _number(owner.max_running)
        case OwnerState.RESTING:
            rest = times.span(timedelta(seconds=standing.rest_seconds or 0))
            rate = _number(owner.rate_limit_per_minute)
            return _("Its rate allows %(rate)s starts a minute: the next one is in %(rest)s.") % {
                "rate": rate,
                "rest": rest,
            }
        case OwnerState.ELIGIBLE:
            return _("Its next run starts when a slot is free and its turn comes.")
        case OwnerState.IDLE if standing.held:
            return _("Nothing waits for a worker. Held runs wait for their window.")
        case OwnerState.IDLE:
            return _("Nothing waits for a worker.")
    return _("Redis does not answer, so nobody knows which owner is next.")


def _number(limit: int | None) -> str:
    # The queues learn of a limit that was lifted a moment later.
    return times.NOTHING if limit is None else number(limit)
