"""Times in pages: ages, moments in the reader's zone with UTC on hover, lengths of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from jobs.core.language import number

NOTHING: Final = "–"


def moment(at: datetime | None) -> SafeString | str:
    """Return a time as an age, with the full local and UTC times on hover."""
    if at is None:
        return NOTHING
    hint = f"{timezone.localtime(at):%Y-%m-%d %H:%M:%S %Z} · {at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    return _time(at, _age(at), hint=hint)


def exact(at: datetime | None) -> SafeString | str:
    """Return a time to the millisecond in the reader's zone, with UTC on hover."""
    if at is None:
        return NOTHING
    local = timezone.localtime(at)
    text = f"{local:%Y-%m-%d %H:%M:%S.%f}"[:-3] + f" {local:%Z}"
    return _time(at, text, hint=f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3])


def clock(at: datetime, *, after: datetime | None) -> SafeString | str:
    """Return a time of day to the millisecond, with the date unless `after` has the same one."""
    if not _is_same_day(at, after):
        return exact(at)
    text = f"{timezone.localtime(at):%H:%M:%S.%f}"[:-3]
    return _time(at, text, hint=f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3])


def between(first: datetime, last: datetime) -> SafeString:
    """Return a span of times in the reader's zone, with one date if both have the same one."""
    if first == last:
        return minute(first)
    return format_html("{} – {}", minute(first), minute(last, after=first))


def minute(at: datetime, *, after: datetime | None = None) -> SafeString:
    """Return a time to the minute, with the date unless `after` has the same one; UTC on hover."""
    local = timezone.localtime(at)
    text = f"{local:%H:%M}" if _is_same_day(at, after) else f"{local:%Y-%m-%d %H:%M}"
    return _time(at, text, hint=f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}")


def _time(at: datetime, text: str, *, hint: str) -> SafeString:
    html = '<time datetime="{}" title="{} UTC">{}</time>'
    return format_html(html, at.isoformat(), hint, text)


def _is_same_day(at: datetime, other: datetime | None) -> bool:
    return other is not None and timezone.localtime(at).date() == timezone.localtime(other).date()


def _age(at: datetime) -> str:
    age = timezone.now() - at
    if abs(age) >= timedelta(days=2):
        return date_format(timezone.localtime(at), "Y-m-d H:i")
    seconds = int(abs(age).total_seconds())
    if seconds < 60:
        text = f"{seconds} s"
    elif seconds < 3600:
        text = f"{seconds // 60} min"
    else:
        text = f"{seconds // 3600} h {seconds % 3600 // 60} min"
    return (_("in %(span)s") if age < timedelta(0) else _("%(span)s ago")) % {"span": text}


def span(length: timedelta | None) -> str:
    """Return a length of time in its two largest units."""
    if length is None:
        return NOTHING
    seconds = max(0.0, length.total_seconds())
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{number(seconds, decimals=1)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
