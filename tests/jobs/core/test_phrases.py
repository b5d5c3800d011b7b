"""jobs/core/phrases.py: English texts that a page can render in another language."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

from django.utils import translation

from jobs.core.language import in_language
from jobs.core.phrases import (
    Language,
    capitalised,
    counted_phrase,
    joined,
    phrase,
    phrase_for,
    short_day,
)

GERMAN = {
    "every minute": "jede Minute",
    "every %(count)s minutes": "alle %(count)s Minuten",
    "%(some)s and %(last)s": "%(some)s und %(last)s",
    "in %(span)s": "in %(span)s!",
    "ordinal %(n)s": "%(n)s.",
    "Mon": "Mo",
}
LANGUAGE = Language(
    lambda text: GERMAN[text],
    lambda one, many, count: GERMAN[one if count == 1 else many],
    lambda number: f"{number:,}".replace(",", "."),
)


def test_a_phrase_is_its_english_text() -> None:
    """So the API, the command line and rows need no more."""
    every = counted_phrase("every minute", "every %(count)s minutes", 1_500)
    assert every == "every 1,500 minutes" and isinstance(every, str)
    both = phrase("%(some)s and %(last)s", some=joined([every, "x"], ", "), last="y")
    assert both == "every 1,500 minutes, x and y"
    assert pickle.loads(pickle.dumps(both)) == both


def test_a_phrase_is_rendered_with_all_phrases_in_it() -> None:
    """Numbers are written as the language does; other texts stay."""
    every = counted_phrase("every minute", "every %(count)s minutes", 1_500)
    both = phrase("%(some)s and %(last)s", some=joined([every, "x"], ", "), last="y")
    assert both.rendered(LANGUAGE) == "alle 1.500 Minuten, x und y"
    one = counted_phrase("every minute", "every %(count)s minutes", 1)
    assert one.rendered(LANGUAGE) == "jede Minute"


def test_words_of_another_library_have_a_template_for_other_languages() -> None:
    third = phrase_for("3rd", "ordinal %(n)s", n=3)
    assert third == "3rd" and third.rendered(LANGUAGE) == "3."
    inside = phrase("in %(span)s", span=third)
    assert inside == "in 3rd" and inside.rendered(LANGUAGE) == "in 3.!"


def test_the_begin_of_a_sentence_and_days() -> None:
    text = capitalised(phrase("in %(span)s", span="1 s"))
    assert text == "In 1 s" and text.rendered(LANGUAGE) == "in 1 s!"
    monday = short_day(datetime(2026, 3, 2, tzinfo=UTC))
    assert monday == "Mon" and monday.rendered(LANGUAGE) == "Mo"


def test_pages_render_a_phrase_for_readers_of_other_languages_only() -> None:
    """In English it is what the API says."""
    text = phrase_for("At 02:30 every day", "at %(time)s %(days)s", time="02:30", days="")
    with translation.override("en-gb"):
        assert in_language(text) is text
    with translation.override("de"):
        assert in_language(text) == "um 02:30 "
        assert in_language("a reason") == "a reason" and in_language(None) is None
