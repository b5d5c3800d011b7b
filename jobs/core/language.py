"""Numbers, and phrases of code without Django, in the reader's language."""

from __future__ import annotations

from typing import Any, Final

from django.utils.formats import number_format
from django.utils.translation import get_language, gettext, ngettext

from jobs.core.phrases import Language, Phrase


def number(value: float, *, decimals: int | None = None) -> str:
    """Return a number with thousands apart: 12,408 in English, 12.408 in German."""
    rounded = value if decimals is None else round(value, decimals)
    return number_format(rounded, decimal_pos=decimals, use_l10n=True, force_grouping=True)


READERS: Final = Language(gettext, ngettext, number)


def in_language(text: Any) -> Any:
    """Return a phrase in the reader's language, any other value as it is; English ones stay."""
    if not isinstance(text, Phrase) or (get_language() or "en").startswith("en"):
        return text
    return text.rendered(READERS)


def count_in_words(count: int) -> str:
    """Return a count as the reader's language writes it; of an inexact one its text."""
    words = getattr(count, "words", None)
    return number(count) if words is None else str(in_language(words))
