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


def leads_somewhere(path: Path, target: str) -> bool:
    """Say whether a link of a page names a file or folder, and a heading that is on that page."""
    file, _, heading = target.partition("#")
    found = (path.parent / file).resolve() if file else path
    if not heading:
        return found.exists()
    headings = HEADING.findall(found.read_text(encoding="utf-8")) if found.exists() else ()
    return heading in {anchor(text) for text in headings}


def test_links_lead_somewhere() -> None:
    """A relative link names a file or folder of the project, and a heading that is on that page."""
    links = [
        (path, match[1] or match[2])
        for path in pages()
        for match in LINK.finditer(prose(path.read_text(encoding="utf-8")))
    ]
    ours = [(path, to) for path, to in links if "://" not in to and not to.startswith("mailto:")]
    assert len(ours) > len(links) // 2
    assert [(name(path), to) for path, to in ours if not leads_somewhere(path, to)] == []


def test_pages_name_no_private_place() -> None:
    """No home folder and no working folder of a developer's machine stands in a page."""
    found = {
        name(path): re.findall(r"/(?:home|root|Users|work)/\S*", path.read_text(encoding="utf-8"))
        for path in pages()
    }
    assert {path: private for path, private in found.items() if private} == {}


@pytest.mark.parametrize("index", ["docs/README.md", "docs/decisions/README.md"])
def test_an_index_names_every_page(index: str) -> None:
    """Each page below its folder, but for decisions, which have an index of their own."""
    folder = (PROJECT / index).parent
    linked = {(folder / match[1]).resolve() for match in LINK.finditer(read(index)) if match[1]}
    below = {path for path in folder.glob("*/*.md") if path.parent.name != "decisions"}
    assert (below or set(folder.glob("0*.md"))) <= linked
