"""Texts that a reader sees in the reader's language, and a program in English.

A `Phrase` is its English text, so the API, the command line and stored rows need no more. It keeps
its template and values: a page renders it again with the functions of a `Language`. This is for
code without Django; `jobs/core/language.py` has the reader's language. `make messages` finds
the templates, since they are literals in the calls of the functions here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Language:
    """How templates and whole numbers are written."""

    gettext: Callable[[str], str]
    ngettext: Callable[[str, str, int], str]
    number: Callable[[int], str]


ENGLISH: Final = Language(
    lambda text: text, lambda one, many, count: one if count == 1 else many, "{:,}".format
)


class Phrase(str):
    """An English text that can be rendered in another language."""

    __slots__ = ("_forms", "_values")

    _forms: tuple[str, ...]
    """A template, or one for 1 and one for other counts; none for parts that are joined."""
    _values: Mapping[str, Any]

    def rendered(self, language: Language) -> str:
        """Return the text in a language, with all phrases in it."""
        return _rendered(self._forms, self._values, language)


def phrase(template: str, **values: Any) -> Phrase:
    """Return a template with its values: phrases, texts, and whole numbers."""
    return _made((template,), values)


def counted_phrase(one: str, many: str, count: int, **values: Any) -> Phrase:
    """Return one of two templates by a count, which is the value `count`."""
    return _made((one, many), {**values, "count": count})


def forms(one: str, many: str) -> tuple[str, str]:
    """Return two templates for `counted_phrase`, so that a table can have them."""
    return one, many


def joined(parts: Iterable[str], by: str) -> Phrase:
    """Return phrases and texts, one after the other."""
    return _made((), {"parts": tuple(parts), "by": by})


def capitalised(text: Phrase) -> Phrase:
    """Return a phrase as the begin of a sentence; a translation writes its nouns as they are."""
    return _made((), {"parts": (text,), "by": ""}, f"{text[0].upper()}{text[1:]}")


def phrase_for(english: str, template: str, **values: Any) -> Phrase:
    """Return an English text whose words are made elsewhere; other languages use the template."""
    return _made((template,), values, english)


def _made(templates: tuple[str, ...], values: Mapping[str, Any], english: str = "") -> Phrase:
    made = Phrase(english or _rendered(templates, values, ENGLISH))
    made._forms, made._values = templates, values
    return made


def _rendered(templates: tuple[str, ...], values: Mapping[str, Any], language: Language) -> str:
    if not templates:
        by: str = values["by"]
        return by.join(_shown(part, language) for part in values["parts"])
    if len(templates) == 1:
        text = language.gettext(templates[0])
    else:
        text = language.ngettext(templates[0], templates[1], values["count"])
    return text % {name: _shown(value, language) for name, value in values.items()}


def _shown(value: Any, language: Language) -> str:
    if isinstance(value, Phrase):
        return str(value) if language is ENGLISH else value.rendered(language)
    return language.number(value) if isinstance(value, int) else str(value)


_DAYS: Final = (
    phrase("Mon"),
    phrase("Tue"),
    phrase("Wed"),
    phrase("Thu"),
    phrase("Fri"),
    phrase("Sat"),
    phrase("Sun"),
)


def short_day(at: datetime) -> Phrase:
    """Return the day of the week of a time, in short."""
    return _DAYS[at.weekday()]
