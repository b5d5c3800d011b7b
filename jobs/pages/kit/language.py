"""Phrases of code without Django, in the reader's language; in English they stay as they are."""

from __future__ import annotations

from typing import Any, Final

from django.utils.functional import lazy
from django.utils.translation import get_language, gettext, ngettext

from jobs.core.phrases import Language, Phrase
from jobs.pages.kit.numbers import number

READERS: Final = Language(gettext, ngettext, number)


def in_language(text: Any) -> Any:
    """Return a phrase in the reader's language; any other value as it is."""
    if not isinstance(text, Phrase) or (get_language() or "en").startswith("en"):
        return text
    return text.rendered(READERS)


def count_in_words(count: int) -> str:
    """Return a count as the reader's language writes it; of an inexact one its text."""
    words = getattr(count, "words", None)
    return number(count) if words is None else str(in_language(words))


lazy_in_language: Final = lazy(in_language, str)
"""`in_language` for texts of modules, such as the choices of a form."""
