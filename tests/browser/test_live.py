"""jobs/static/jobs/pages/live.js in a real browser: it renews a page, and disturbs nobody."""

from collections.abc import Callable
from typing import Any

import pytest

from jobs.models import Owner
from jobs.pages.kit.polls import PART
from tests.jobs.broken import pulse_is_missing
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

Browse = Callable[..., Any]
EVERY_SECOND = """
Object.defineProperty(Document.prototype, 'hidden', {get: () => Boolean(window.isHidden)});
const every = window.setInterval;
window.setInterval = (act, span) => every(act, Math.min(span, 200));
"""
"""Polls come five times a second, and `window.isHidden` hides the tab, as its browser would."""


FOCUS_AT_ANSWER = """
() => {
    const ask = window.fetch;
    window.fetch = async (...asked) => {
        const answer = await ask(...asked);
        if (answer.status === 200) {
            window.fetch = ask;
            document.querySelector('[data-live] a').focus();
        }
        return answer;
    };
}
"""

NO_ANSWERS = """
() => {
    window.answering = window.fetch;
    window.fetch = () => Promise.reject(new Error('away'));
}
"""


@pytest.fixture
def polled(browse: Browse) -> tuple[Any, list[int]]:
    """The overview of acme, which is polled, and the status of each poll; it has two problems."""
    pulse_is_missing()
    page = browse("/login/")
    page.add_init_script(EVERY_SECOND)
    answers: list[int] = []

    def note(response: Any) -> None:
        if PART.lower() in response.request.headers:
            answers.append(response.status)

    page.on("response", note)
    page.goto("/?owner=acme")
    return page, answers


def after(page: Any, answers: list[int], count: int) -> None:
    """Wait for so many more polls."""
    enough = len(answers) + count
    until(page, lambda: len(answers) >= enough)


def until(page: Any, is_so: Callable[[], bool]) -> None:
    """Wait for a condition, while the page goes on."""

    def looked() -> bool:
        page.wait_for_timeout(50)
        return is_so()

    wait_for(looked, what="the page")


def weight(page: Any) -> str:
    """Return acme's weight on the page."""
    row = page.locator("tr", has=page.get_by_role("link", name="acme", exact=True))
    return str(row.locator("td").nth(1).inner_text())


def change(acme: Owner, to: int) -> None:
    Owner.objects.filter(pk=acme.pk).update(weight=to)


def test_a_poll_without_a_change_is_304(polled: tuple[Any, list[int]], acme: Owner) -> None:
    """And a change is shown."""
    page, answers = polled
    # Polls of a slow server overlap: the first ones have no ETag yet.
    until(page, lambda: answers[-1:] == [304])
    assert weight(page) == "3"
    change(acme, 5)
    until(page, lambda: weight(page) == "5")
    until(page, lambda: answers[-1:] == [304])


def test_a_hidden_tab_does_not_ask(polled: tuple[Any, list[int]]) -> None:
    """When it is shown again, it does."""
    page, answers = polled
    after(page, answers, 1)
    page.evaluate("window.isHidden = true")
    page.wait_for_timeout(500)  # a poll that is on its way
    before = len(answers)
    page.wait_for_timeout(1_500)
    assert len(answers) == before
    page.evaluate("window.isHidden = false")
    after(page, answers, 1)


def test_the_focus_and_a_selection_stay(polled: tuple[Any, list[int]], acme: Owner) -> None:
    """The part is renewed when it is left."""
    page, answers = polled
    after(page, answers, 1)
    link = page.get_by_role("link", name="acme", exact=True)
    link.focus()
    change(acme, 7)
    page.wait_for_timeout(1_500)
    assert weight(page) == "3" and page.evaluate("document.activeElement.textContent") == "acme"
    page.evaluate("document.activeElement.blur()")
    until(page, lambda: weight(page) == "7")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('[data-live] h2'))")
    change(acme, 9)
    page.wait_for_timeout(1_500)
    assert weight(page) == "7" and page.evaluate("String(getSelection())")


def test_what_a_reader_has_opened_stays_open(polled: tuple[Any, list[int]], acme: Owner) -> None:
    """The part is replaced as a whole, and looks as the reader has left it."""
    page, answers = polled
    after(page, answers, 1)
    details = page.locator("[data-live] details")
    assert details.count() == 1 and details.get_attribute("open") is None
    details.evaluate("one => { one.open = true; one.dataset.isOld = '' }")
    change(acme, 5)
    until(page, lambda: weight(page) == "5")
    assert details.get_attribute("data-is-old") is None, "the part was replaced"
    assert details.get_attribute("open") is not None


def test_a_page_without_answers_says_so(polled: tuple[Any, list[int]]) -> None:
    """With the time of the last one, until the next one."""
    page, answers = polled
    after(page, answers, 1)
    stale = page.locator("[data-stale]")
    assert not stale.is_visible()
    page.evaluate(NO_ANSWERS)
    stale.wait_for()
    assert page.locator("[data-stale] time").inner_text().count(":") == 2
    page.evaluate("() => { window.fetch = window.answering; }")
    stale.wait_for(state="hidden")


def test_a_change_that_came_while_the_part_was_used_is_shown_later(
    polled: tuple[Any, list[int]], acme: Owner
) -> None:
    """A reader enters the part between a question and its answer: it is asked again."""
    page, answers = polled
    until(page, lambda: answers[-1:] == [304])
    page.evaluate(FOCUS_AT_ANSWER)
    # A question that was on its way has its answer by then: it would bring the change unseen.
    after(page, answers, 2)
    change(acme, 7)
    until(page, lambda: page.evaluate("document.activeElement.matches('[data-live] a')"))
    assert weight(page) == "3"
    page.evaluate("document.activeElement.blur()")
    until(page, lambda: weight(page) == "7")
