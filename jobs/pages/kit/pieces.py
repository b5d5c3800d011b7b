"""Small pieces of HTML: states, bars, lines. Every value is escaped.

A state is shown by a sign and a word, never by colour alone. Pictures are SVG whose sizes are
attributes, so pages need no inline style.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from jobs.core.language import number
from jobs.core.states import State
from jobs.runs.reads.choices import word_of

SIGNS: Final[Mapping[str, tuple[str, str]]] = {
    State.SUCCEEDED: ("✓", "good"),
    State.FAILED: ("✕", "bad"),
    State.EXPIRED: ("⌛", "warn"),
    State.CANCELLED: ("⊘", "idle"),
    State.RUNNING: ("▶", "busy"),
    State.ADMITTED: ("▷", "busy"),
    State.CANCELLING: ("…", "warn"),
    State.RETRYING: ("↻", "warn"),
    State.QUEUED: ("≡", "idle"),
    State.HELD: ("◷", "held"),
    State.SCHEDULED: ("◔", "held"),
}
"""The sign and the tone of each state, in the order of a bar. Tones are classes of parts.css."""
ENDED_BADLY: Final = frozenset({State.FAILED, State.EXPIRED, State.CANCELLED})


def pill(word: Any, *, sign: str, tone: str) -> SafeString:
    """Return a word with its sign on a ground of its tone."""
    return format_html(
        '<span class="pill {}"><span aria-hidden="true">{}</span> {}</span>', tone, sign, word
    )


def state_pill(state: str) -> SafeString:
    """Return the state of a run."""
    sign, tone = SIGNS.get(state, ("?", "idle"))
    return pill(word_of(state), sign=sign, tone=tone)


def states_bar(counts: Mapping[Any, int], *, total: int = 1) -> SafeString:
    """Return a bar with a part for each state of at least `total`, and the counts as text."""
    whole = max(sum(counts.values()), total)
    parts, words, left = [], [], 0.0
    for state, (_sign, tone) in SIGNS.items():
        if count := counts.get(state, 0):
            width = 100 * count / whole
            parts.append((tone, f"{left:.3f}", f"{width:.3f}"))
            words.append(f"{number(count)} {word_of(state)}")
            left += width
    text = " · ".join(words) or _("no runs")
    picture = format_html_join(
        "", '<rect class="fill {}" x="{}" width="{}" height="6"></rect>', parts
    )
    return format_html(
        '<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" '
        'aria-label="{}">{}</svg><span class="soft">{}</span>',
        text,
        picture,
        text,
    )


def results_strip(states: Sequence[str]) -> SafeString:
    """Return the ends of a job's last runs, the newest at the right, and a count as text.

    A run that succeeded is a full bar, one that has not ended a low one, any other end a bar with
    a dark foot: so the shapes say it, too.
    """
    parts = [
        (f"end {tone}", place * 8, *_heights(state), state)
        for place, state in enumerate(states)
        for _sign, tone in (SIGNS.get(state, ("?", "idle")),)
    ]
    bars = format_html_join(
        "",
        '<rect class="{}" x="{}" y="{}" width="6" height="{}"><title>{}</title></rect>'
        '<rect class="mark" x="{}" y="11" width="6" height="{}"></rect>',
        (
            (css, x, top, height, word_of(state), x, 5 * (state in ENDED_BADLY))
            for css, x, top, height, state in parts
        ),
    )
    counts = ((state, states.count(state)) for state in dict.fromkeys(states))
    text = " · ".join(f"{number(count)} {word_of(state)}" for state, count in counts) or _(
        "no runs"
    )
    return format_html(
        '<svg class="strip" viewBox="0 0 {} 16" width="{}" height="16" role="img" '
        'aria-label="{}">{}</svg>',
        max(8 * len(states), 8),
        max(8 * len(states), 8),
        text,
        bars,
    )


def _heights(state: str) -> tuple[int, int]:
    return (0, 16) if state == State.SUCCEEDED or state in ENDED_BADLY else (8, 8)


def share_bar(received: float | None, entitled: float | None) -> SafeString:
    """Return a bar: its fill is the share that was received, its mark the one entitled to."""
    got, due = (0.0 if part is None else min(1.0, max(0.0, part)) for part in (received, entitled))
    text = _("received %(got)s, entitled to %(due)s") % {
        "got": _percent(received),
        "due": _percent(entitled),
    }
    return format_html(
        '<svg class="share" viewBox="0 0 102 10" preserveAspectRatio="none" role="img" '
        'aria-label="{}"><rect class="ground" y="2" width="102" height="6"></rect>'
        '<rect class="fill busy" y="2" width="{}" height="6"></rect>'
        '<rect class="mark" x="{}" width="2" height="10"></rect></svg>'
        '<span class="soft">{} / {}</span>',
        text,
        f"{102 * got:.1f}",
        f"{100 * due:.1f}",
        _percent(received),
        _percent(entitled),
    )


def sparkline(values: Sequence[float], *, label: str, tone: str = "busy") -> SafeString:
    """Return a line of values, the newest at the right, over an area; `label` says it in words."""
    most = max([*values, 1])
    step = 100 / max(len(values) - 1, 1)
    points = " ".join(
        f"{place * step:.2f},{30 - 28 * value / most:.2f}" for place, value in enumerate(values)
    )
    return format_html(
        '<svg class="line" viewBox="0 0 100 30" preserveAspectRatio="none" role="img" '
        'aria-label="{}"><polygon class="area {}" points="0,30 {} 100,30"></polygon>'
        '<polyline class="{}" points="{}"></polyline></svg>',
        label,
        tone,
        points,
        tone,
        points,
    )


def _percent(part: float | None) -> str:
    return "–" if part is None else f"{100 * part:.0f} %"
