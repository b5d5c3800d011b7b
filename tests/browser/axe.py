"""axe-core in a page of a real browser: it finds what hinders people who use no mouse."""

from functools import cache
from importlib.resources import files
from typing import Any

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


@cache
def _source() -> str:
    return files("axe_core_python").joinpath("axe.min.js").read_text()
