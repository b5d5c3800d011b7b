"""The verdict's rules about one owner: it gets too little, or misses its objective. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from fleet import OwnerState
from jobs.core.language import number
from jobs.system.rollups.objectives import FAST, SPANS
from jobs.system.verdict.facts import Facts, Problem


def starved(facts: Facts) -> Iterator[Problem]:
    if facts.starved is None or facts.starved.seen is None:
        return
    owner, seen = facts.starved.owner, facts.starved.seen
    texts = {
        OwnerState.PAUSED: (
            _("Owner %(owner)s is paused while its runs wait: %(count)s."),
            _("Resume it when the reason of the pause is gone."),
        ),
        OwnerState.AT_CAP: (
            _("Owner %(owner)s is at its cap of %(cap)s while its runs wait: %(count)s."),
            _("Raise its cap if there are slots to spare."),
        ),
        OwnerState.RESTING: (
            _("Owner %(owner)s has used its rate while its runs wait: %(count)s."),
            _("Raise its rate if that is too slow."),
        ),
    }
    text, todo = texts.get(
        seen.state,
        (
            _("Owner %(owner)s gets less than half of its share: a run waits for %(minutes)s min."),
            _("Look at the workers' queues, and at locks of its runs."),
        ),
    )
    facts_of_text = {
        "owner": owner.slug,
        "count": number(seen.backlog),
        "cap": seen.max_running,
        "minutes": int(facts.starved.wait_seconds // 60),
    }
    yield Problem(
        code=f"starved_{seen.state.value.replace(' ', '_')}",
        text=text % facts_of_text,
        todo=todo,
        is_bad=False,
        page="owner",
        key=owner.slug,
    )


def objective(facts: Facts) -> Iterator[Problem]:
    if facts.burning is None or facts.burning.burning is None:
        return
    one, pace = facts.burning, facts.burning.burning
    words = _(
        "Owner %(owner)s misses its objective: %(late)s %% of the starts of %(span)s were late."
    )
    late = 1 - (one.in_time(pace.long) or 0.0)
    yield Problem(
        code=f"objective_burns_{pace.name}",
        text=words
        % {"owner": one.owner.slug, "late": f"{late:.0%}"[:-1], "span": SPANS[pace.long]},
        todo=_("Look at its share, its limits, and at the slots."),
        is_bad=pace is FAST,
        page="owner",
        key=one.owner.slug,
    )
