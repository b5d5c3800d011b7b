"""Whether a change only narrows a window, so that it keeps its approval. Pure.

This is decided by the fields, without listing occurrences: a rule may have no end. In doubt the
answer is no, and the window needs a new approval.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from jobs.core.errors import WindowError
from jobs.windows.entries import Effect, Entry
from jobs.windows.rules import SUB_DAILY, Rule, read_rule

_NONE: Final = timedelta(0)
_FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES: Final = frozenset({"byhour", "byminute", "bysecond"})


def only_narrows(before: Entry, after: Entry) -> bool:
    """Say whether `after`, with the approvals of `before`, is open only when `before` was.

    Each occurrence must lie within one of `before`: all start later by the same time, and none ends
    later. A change of the zone or of the rule's pattern never counts as narrowing.
    """
    later = after.starts - before.starts
    return (
        before.effect is after.effect is Effect.WINDOW
        and before.zone == after.zone
        and _NONE <= later <= before.duration - after.duration
        and (later == _NONE or _may_start_later(before, after))
        and _has_no_new_times(before.rule, after.rule)
        and _has_no_new_dates(before, after, later=later)
        and _is_valid_no_longer(before, after)
    )


def _may_start_later(before: Entry, after: Entry) -> bool:
    """Say whether a later start moves all occurrences equally, and all approvals still match."""
    if before.approved_starts is not None:
        return False
    # A decision on one occurrence names its start: a moved one would escape its revocation.
    approved = before.approved
    if approved and (len(approved) > 1 or approved[0].start > _FIRST):
        return False
    if not before.rule:
        return True
    rule = _read(before.rule)
    return (
        rule is not None
        and rule.frequency not in SUB_DAILY
        and _TIMES.isdisjoint(rule.by)
        and before.starts.date() == after.starts.date()
    )


def _has_no_new_times(before: str, after: str) -> bool:
    """Say whether a rule is the same, or only ends earlier."""
    if before == after:
        return True
    old, new = _read(before), _read(after)
    if old is None or new is None:
        return False
    is_same = replace(old, count=None, until=None) == replace(new, count=None, until=None)
    return is_same and _ends_no_later(old, new)


def _ends_no_later(old: Rule, new: Rule) -> bool:
    if old.count is not None:
        return new.count is not None and new.count <= old.count
    if old.until is None:
        return True
    if new.until is None or (old.until.tzinfo is None) is not (new.until.tzinfo is None):
        return False
    return new.until <= old.until


def _has_no_new_dates(before: Entry, after: Entry, *, later: timedelta) -> bool:
    """Say whether all excluded dates still are, by their new start, and none is added."""
    excluded = set(after.excluded)
    if not excluded.issuperset(wall + later for wall in before.excluded):
        return False
    added = set(before.added).difference(before.excluded)
    return all(wall in added or wall - later in added for wall in set(after.added) - excluded)


def _is_valid_no_longer(before: Entry, after: Entry) -> bool:
    begins, ends = before.valid_from, before.valid_until
    return (begins is None or (after.valid_from is not None and after.valid_from >= begins)) and (
        ends is None or (after.valid_until is not None and after.valid_until <= ends)
    )


def _read(rule: str) -> Rule | None:
    """Return a rule; None without one, and for one that raw SQL has broken."""
    try:
        return read_rule(rule) if rule else None
    except WindowError:
        return None
