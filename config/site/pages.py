"""Hooks of MkDocs: the order of docs/, the pages of the root, and links to code.

`docs/README.md` has the order: each bold word begins a part, and each link is a page of it. The
site has no code, so links to files beside Markdown become text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[2]
ROOT_PAGES: Final = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")
"""Pages of the root, which the site has under `root/`."""
LINK: Final = re.compile(r"(?<!!)\[((?:[^][]|\[[^]]*\])+)\]\(([^)\s]+)\)")
PART: Final = re.compile(r"\*\*(\w+)\*\*")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation, from docs/README.md."""
    parts: list[dict[str, Any]] = [{"Documentation": "README.md"}]
    for line in (ROOT / "docs/README.md").read_text().splitlines():
        if part := PART.match(line):
            parts.append({part[1]: []})
        for title, target in LINK.findall(line):
            address = _address("README.md", target)
            if address is not None and isinstance(pages := next(iter(parts[-1].values())), list):
                pages.append({title: address.partition("#")[0]})
    parts.append({"Changes": "root/CHANGELOG.md"})
    config.nav = parts
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root."""
    for name in ROOT_PAGES:
        text = (ROOT / name).read_text()
        files.append(File.generated(config, f"root/{name}", content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_given: Any) -> str:
    """Lead links to pages of the site; others become text."""
    here = page.file.src_uri

    def led(match: re.Match[str]) -> str:
        text, target = match.groups()
        if target.startswith(("https:", "http:", "mailto:", "#")):
            return match[0]
        address = _address(here, target)
        if address is None:
            return text
        path, mark, anchor = address.partition("#")
        return f"[{text}]({posixpath.relpath(path, posixpath.dirname(here) or '.')}{mark}{anchor})"

    return LINK.sub(led, markdown)


def _address(here: str, target: str) -> str | None:
    """Return the address in the site that a link leads to; None for a file that is no page."""
    path, mark, anchor = target.partition("#")
    folder = "" if here.startswith("root/") else posixpath.join("docs", posixpath.dirname(here))
    full = posixpath.normpath(posixpath.join(folder, path))
    if full in ROOT_PAGES:
        return f"root/{full}{mark}{anchor}"
    if full.startswith("docs/") and (ROOT / full).is_file():
        return f"{full.removeprefix('docs/')}{mark}{anchor}"
    return None
