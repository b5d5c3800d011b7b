"""`make site`: each page of docs/ is a page of the site, which loads nothing from elsewhere."""

import re
import subprocess

import pytest

from tests.docs.pages import PROJECT

pytestmark = pytest.mark.proof

LOADED = re.compile(r'<(?:script|img|iframe)[^>]* src="https?:|<link[^>]* href="https?:')


def test_the_site_has_every_page() -> None:
    """A broken link fails the build."""
    subprocess.run(["make", "site"], cwd=PROJECT, check=True)
    built = PROJECT / "build/site"
    pages = {path.relative_to(PROJECT / "docs") for path in (PROJECT / "docs").rglob("*.md")}
    for page in pages:
        name = "index.html" if page.name == "README.md" else page.with_suffix(".html").name
        text = (built / page.parent / name).read_text()
        assert not LOADED.search(text), page
