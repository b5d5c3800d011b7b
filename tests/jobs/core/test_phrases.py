"""jobs/core/phrases.py: English texts that a page can render in another language."""

import pickle

from django.utils import translation

from jobs.core.language import in_language
from jobs.core.phrases import Language, counted_phrase, joined, phrase, phrase_for

GERMAN = {
    "every minute": "jede Minute",
    "every %(count)s minutes": "alle %(count)s Minuten",
    "%(some)s and %(last)s": "%(some)s und %(last)s",
}
LANGUAGE = Language(
    lambda text: GERMAN[text],
    lambda one, many, count: GERMAN[one if count == 1 else many],
    lambda number: f"{number:,}".replace(",", "."),
)


def test_a_phrase_is_english_and_is_rendered_with_all_phrases_in_it() -> None:
    """The API, the command line and rows need no more than the text; other texts in it stay.

    Numbers are written as the language does.
    """
    one, many = (
        counted_phrase("every minute", "every %(count)s minutes", count) for count in (1, 1_500)
    )
    both = phrase("%(some)s and %(last)s", some=joined([many, "x"], ", "), last="y")
    assert both == "every 1,500 minutes, x and y" and isinstance(both, str)
    assert pickle.loads(pickle.dumps(both)) == both
    assert both.rendered(LANGUAGE) == "alle 1.500 Minuten, x und y"
    assert one.rendered(LANGUAGE) == "jede Minute"


def test_pages_render_a_phrase_for_readers_of_other_languages_only() -> None:
    """In English it is what the API says."""
    text = phrase_for("At 02:30 every day", "at %(time)s %(days)s", time="02:30", days="")
    with translation.override("en-gb"):
        assert in_language(text) is text
    with translation.override("de"):
        assert in_language(text) == "um 02:30 "
        assert in_language("a reason") == "a reason" and in_language(None) is None
