"""The approval state of a window in words: requested, approved until when, rejected, revoked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _

from jobs.calendars.hours import entry_of
from jobs.core.errors import WindowError
from jobs.core.phrases import Phrase, phrase
from jobs.models import Decision, Window, WindowDecision, WindowEffect
from jobs.windows import Span, in_words

FOR_EVER: Final = datetime(2099, 12, 31, tzinfo=UTC)
_ONE: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class WindowState:
    """A word, its colour (a state of runs), and details."""

    word: str
    kind: str
    more: str = ""

    def __str__(self) -> str:
        return f"{self.word} {self.more}".strip()


class Approval(StrEnum):
    """The outcome of the request of a window; pages show `state_of`."""

    NOT_NEEDED = "not needed"
    REQUESTED = "requested"
    APPROVED = "approved"
    IN_PART = "approved in part"
    REJECTED = "rejected"
    REVOKED = "revoked"
    EXPIRED = "expired"
    UNREADABLE = "unreadable"


def approval_of(window: Window, *, now: datetime) -> Approval:
    """Return the approval of a window, from its row, its calendar and its decisions."""
    try:
        approved = entry_of(window).approved
    # Raw SQL may have broken the row.
    except (WindowError, ValueError, TypeError):
        return Approval.UNREADABLE
    if approved is None:
        return Approval.NOT_NEEDED
    every = sorted(window.decisions.all(), key=lambda one: one.pk)
    decisions = [one for one in every if one.revision == window.revision]
    if not decisions:
        return Approval.REQUESTED
    standing = [span for span in approved if span.length > _ONE]
    if standing:
        return Approval.APPROVED if standing[-1].end > now else Approval.EXPIRED
    if approved:
        return Approval.IN_PART
    newest = decisions[-1].decision
    return Approval.EXPIRED if newest == Decision.APPROVED else Approval(newest)


def seen_of(window: Window) -> str:
    """Return a text that changes when a window needs a new look before it is decided on."""
    newest = max((one.pk for one in window.decisions.all()), default=0)
    return f"{window.revision} {newest}"


def words_of(window: Window) -> Phrase:
    """Return when a window is, or why it cannot be read."""
    try:
        return in_words(entry_of(window))
    # Rows may be written by raw SQL.
    except Exception as error:
        return unreadable(error)


def unreadable(error: Exception) -> Phrase:
    """Return the text that is shown for a window that cannot be read."""
    return phrase("cannot be read (%(error)s)", error=str(error))


def state_of(window: Window, *, now: datetime) -> WindowState:
    """Return the state of a window, from its row, its calendar and its decisions."""
    approved = entry_of(window).approved
    if approved is None:
        if window.effect == WindowEffect.FREEZE:
            return WindowState(_("freeze"), "expired", _("needs no approval"))
        return WindowState(_("counts"), "succeeded", _("needs no approval"))
    every = sorted(window.decisions.all(), key=lambda one: one.pk)
    decisions = [one for one in every if one.revision == window.revision]
    if not decisions:
        return _asked(window, is_again=bool(every))
    return _decided(decisions[-1], approved, now=now)


def _asked(window: Window, *, is_again: bool) -> WindowState:
    by = window.requester.get_username() if window.requester else ""
    by_whom = _("by %s") % by if by else ""
    return WindowState(_("asked for again") if is_again else _("asked for"), "held", by_whom)


def _decided(newest: WindowDecision, approved: Sequence[Span], *, now: datetime) -> WindowState:
    by = _("by %s") % newest.actor_name if newest.actor_name else ""
    standing = [span for span in approved if span.length > _ONE]
    if standing:
        until = standing[-1].end
        if until <= now:
            return WindowState(_("approval has expired"), "expired", f"{until:%Y-%m-%d %H:%M} UTC")
        more = "" if until > FOR_EVER else _("until %s UTC") % f"{until:%Y-%m-%d %H:%M}"
        return WindowState(_("approved"), "succeeded", f"{by} {more}".strip())
    if approved:
        first = approved[-1].start
        count_and_last = _("%(count)s of its occurrences, the last %(at)s UTC") % {
            "count": len(approved),
            "at": f"{first:%Y-%m-%d %H:%M}",
        }
        return WindowState(_("approved in part"), "succeeded", f"{count_and_last} {by}".strip())
    kind = "failed" if newest.decision == Decision.REJECTED else "cancelled"
    word = newest.get_decision_display()
    if newest.decision == Decision.APPROVED:
        word, kind = _("approval has expired"), "expired"
    return WindowState(word, kind, by)


# --- the same as queries ---------------------------------------------------------------------


def needing_approval(windows: QuerySet[Any]) -> QuerySet[Any]:
    """Return the windows that need an approval."""
    return windows.filter(effect=WindowEffect.WINDOW, calendar__needs_approval=True)


def to_be_approved(windows: QuerySet[Any]) -> QuerySet[Any]:
    """Return the windows that need an approval and have no decision as they are now."""
    return needing_approval(windows).filter(~Exists(_decisions()))


def with_approval(windows: QuerySet[Any]) -> QuerySet[Any]:
    """Return the windows with an approval, of all or some occurrences, that still counts.

    A later rejection or revocation of the whole window ends it.
    """
    since = _decisions_of(OuterRef("window"), OuterRef("revision")).filter(
        pk__gt=OuterRef("pk"), occurrence_at=None
    )
    approved = _decisions().filter(decision=Decision.APPROVED)
    last = approved.filter(~Exists(since.exclude(decision=Decision.APPROVED)))
    return needing_approval(windows).filter(Exists(last))


def with_decision(windows: QuerySet[Any], decision: str) -> QuerySet[Any]:
    """Return the windows without an approval whose last decision is this one."""
    newest = _decisions().order_by("-pk").values("decision")[:1]
    left = needing_approval(windows).alias(newest=Subquery(newest)).filter(newest=decision)
    return left.exclude(pk__in=with_approval(windows).values("pk"))


def _decisions() -> QuerySet[WindowDecision]:
    return _decisions_of(OuterRef("pk"), OuterRef("revision"))


def _decisions_of(window: OuterRef, revision: OuterRef) -> QuerySet[WindowDecision]:
    return WindowDecision.objects.filter(window=window, revision=revision)
