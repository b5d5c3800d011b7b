"""Our pages in a real browser: light and dark, wide and narrow, with and without JavaScript."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.conftest import NARROW, shot

pytestmark = pytest.mark.proof

Browse = Callable[..., Any]
PATHS = (
    "/",
    "/login/",
    "/search/?q=a",
    "/audit/",
    "/owners/",
    "/owners/acme/",
    "/owners/acme/limits/",
)
"""The pages that every look below visits. A new page adds its path."""


def look(page: Any, path: str, *, name: str) -> None:
    """Fail when a page is wider than the window, or a text has a contrast below 4.5 to 1."""
    page.goto(path)
    shot(page, name)
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    low = [found for found in page.evaluate(TEXT_CONTRASTS) if found[0] < 4.5]
    assert not low, path
    assert page.evaluate("document.querySelectorAll('h1').length") == 1, path


@pytest.mark.parametrize("width", [1280, NARROW["width"]])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_and_can_be_read(browse: Browse, scheme: str, width: int) -> None:
    """The console has nothing to report, either: see `browsing`."""
    page = browse("/", viewport={"width": width, "height": 740}, color_scheme=scheme)
    for number, path in enumerate(PATHS):
        look(page, path, name=f"page-{number:02}-{scheme}-{width}")


def test_the_theme_of_a_person_is_stronger_than_that_of_the_system(browse: Browse) -> None:
    """Set without JavaScript."""
    page = browse("/", color_scheme="light", java_script_enabled=False)
    page.select_option("#theme", "dark")
    page.get_by_role("button", name="Set").click()
    look_of_body = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(look_of_body) == "rgb(17, 20, 26)"


def test_keys_open_pages_and_their_list(browse: Browse) -> None:
    page = browse("/?owner=acme")
    page.keyboard.press("?")
    assert page.get_by_text("next and previous row").is_visible()
    page.keyboard.press("g")
    with page.expect_navigation():
        page.keyboard.press("o")
    assert page.url.endswith("/?owner=acme")


TEXT_CONTRASTS = """() => {
    // Any notation of a colour becomes its bytes.
    const paper = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
    const bytes = colour => {
        paper.clearRect(0, 0, 1, 1);
        paper.fillStyle = colour;
        paper.fillRect(0, 0, 1, 1);
        return paper.getImageData(0, 0, 1, 1).data;
    };
    const light = ([r, g, b]) => {
        [r, g, b] = [r, g, b].map(v => (v /= 255) <= .04045 ? v / 12.92
            : ((v + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b;
    };
    const ground = node => {
        for (let at = node; at; at = at.parentElement) {
            const found = bytes(getComputedStyle(at).backgroundColor);
            if (found[3] === 255) return found;
        }
        return [255, 255, 255];
    };
    const found = [];
    for (const node of document.body.querySelectorAll('*')) {
        const text = [...node.childNodes].filter(one => one.nodeType === 3)
            .map(one => one.data.trim()).join('') || node.value || '';
        if (!text || !node.checkVisibility() || node.closest('svg, datalist')) continue;
        const [a, b] = [bytes(getComputedStyle(node).color), ground(node)].map(light);
        found.push([(Math.max(a, b) + .05) / (Math.min(a, b) + .05), String(text).slice(0, 40)]);
    }
    if (!found.length) throw new Error('no text was measured');
    return found;
}"""
