"""The picture of the last minutes: runs that succeeded above a line, runs that failed below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from jobs.core.language import number
from jobs.core.states import State
from jobs.system.rollups.reads import Minute

ABOVE: Final = 90
BELOW: Final = 30
STEP: Final = 10
LEAST: Final = 2.0
"""The height of a bar that is not empty: a single failure is seen."""


def outcome_bars(minutes: Sequence[Minute]) -> SafeString:
    """Return the bars of some minutes, the newest at the right, with the sums as text.

    Both sides have one scale, so that they can be compared.
    """
    good = [minute.outcomes.get(State.SUCCEEDED, 0) for minute in minutes]
    bad = [minute.outcomes.get(State.FAILED, 0) for minute in minutes]
    scale = min(ABOVE / max([*good, 1]), BELOW / max([*bad, 1]))
    text = _("%(good)s succeeded, %(bad)s failed; at most %(most)s succeeded in a minute") % {
        "good": number(sum(good)),
        "bad": number(sum(bad)),
        "most": number(max([*good, 0])),
    }
    parts = [
        (tone, place * STEP, f"{top:.1f}", f"{height:.1f}")
        for place, counts in enumerate(zip(good, bad, strict=True))
        for tone, top, height in _bars(*counts, scale=scale)
    ]
    bars = format_html_join(
        "", '<rect class="fill {}" x="{}" y="{}" width="8" height="{}"></rect>', parts
    )
    return format_html(
        '<svg class="minutes" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" '
        'aria-label="{}"><rect class="ground" y="{}" width="{}" height="1"></rect>{}</svg>',
        STEP * max(len(minutes), 1),
        ABOVE + BELOW,
        text,
        ABOVE,
        STEP * max(len(minutes), 1),
        bars,
    )


def _bars(good: int, bad: int, *, scale: float) -> list[tuple[str, float, float]]:
    found = []
    if good:
        height = max(LEAST, good * scale)
        found.append(("good", ABOVE - height, height))
    if bad:
        found.append(("bad", ABOVE + 1.0, max(LEAST, bad * scale)))
    return found
