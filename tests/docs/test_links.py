"""Every page: its links lead somewhere, and it names no path of one machine."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import PROJECT, pages, prose, read

LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def name(path: Path) -> str:
    return str(path.relative_to(PROJECT))


def anchor(heading: str) -> str:
    """Return the anchor that a heading gets on a page."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("path", pages(), ids=name)
def test_links_lead_somewhere(path: Path) -> None:
    """A relative link names a file or folder of the project, and a heading that is on that page."""
    for match in LINK.finditer(prose(path.read_text(encoding="utf-8"))):
        target = match[1] or match[2]
        if "://" in target or target.startswith("mailto:"):
            continue
        file, _, heading = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), target
        if heading:
            headings = HEADING.findall(found.read_text(encoding="utf-8"))
            assert heading in {anchor(text) for text in headings}, target


@pytest.mark.parametrize("path", pages(), ids=name)
def test_pages_name_no_private_place(path: Path) -> None:
    """No home folder and no working folder of a developer's machine stands in a page."""
    private = re.findall(r"/(?:home|root|Users|work)/\S*", path.read_text(encoding="utf-8"))
    assert private == []


@pytest.mark.parametrize("index", ["docs/README.md", "docs/decisions/README.md"])
def test_an_index_names_every_page(index: str) -> None:
    """Each page below its folder, but for decisions, which have an index of their own."""
    folder = (PROJECT / index).parent
    linked = {(folder / match[1]).resolve() for match in LINK.finditer(read(index)) if match[1]}
    below = {path for path in folder.glob("*/*.md") if path.parent.name != "decisions"}
    assert (below or set(folder.glob("0*.md"))) <= linked
