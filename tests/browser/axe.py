"""What hinders people on a page of a real browser: by axe-core, and by the contrast of texts."""

from functools import cache
from importlib.resources import files
from typing import Any

LEAST_CONTRAST = 4.5
SERIOUS = ("serious", "critical")
# A live part is not renewed while axe-core walks over its elements: the tab counts as hidden.
_RUN = """async () => {
    Object.defineProperty(document, 'hidden', {value: true, configurable: true});
    const found = await axe.run(document, {resultTypes: ['violations']});
    delete document.hidden;
    return found.violations.map(
        one => [one.impact, one.id, one.nodes.map(node => node.html).join(' | ').slice(0, 300)]);
}"""


def barriers(page: Any) -> list[list[str]]:
    """Return what axe-core finds on a page that is serious or worse: impact, rule, elements."""
    # By the debugger, which the page's CSP does not bind.
    page.evaluate(_source())
    found: list[list[str]] = page.evaluate(_RUN)
    return [one for one in found if one[0] in SERIOUS]


def low_contrasts(page: Any, selector: str = "*") -> list[tuple[float, str]]:
    """Return the contrast and the text of elements whose contrast is below 4.5 to 1."""
    found = page.evaluate(_CONTRASTS, selector)
    return [(ratio, text) for ratio, text in found if ratio < LEAST_CONTRAST]


@cache
def _source() -> str:
    return files("axe_core_python").joinpath("axe.min.js").read_text()


_CONTRASTS = """selector => {
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
    for (const node of document.body.querySelectorAll(selector)) {
        const text = [...node.childNodes].filter(one => one.nodeType === 3)
            .map(one => one.data.trim()).join('') || node.value || '';
        if (!text || !node.checkVisibility() || node.closest('svg, datalist')) continue;
        const [a, b] = [bytes(getComputedStyle(node).color), ground(node)].map(light);
        found.push([(Math.max(a, b) + .05) / (Math.min(a, b) + .05), String(text).slice(0, 40)]);
    }
    if (!found.length && selector === '*') throw new Error('no text was measured');
    return found;
}"""
