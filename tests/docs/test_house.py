"""CONTRIBUTING.md: the listing of jobs and fleet names what is there, each line once."""

import pytest

from tests.docs.pages import PROJECT, blocks, read

HIDDEN = {"__pycache__", "py.typed"}


def listing() -> dict[str, list[str]]:
    """Return the names below each folder whose inside the listing tells, in its order."""
    [house] = blocks(read("CONTRIBUTING.md"), info="text house")
    found: dict[str, list[str]] = {}
    folders: list[str] = []
    for line in house.text.splitlines():
        if not line:
            continue
        name = line.split()[0].rstrip("/")
        depth = (len(line) - len(line.lstrip())) // 2
        folders[depth:] = [name]
        if depth:
            found.setdefault("/".join(folders[:depth]), []).append(name)
    return found


@pytest.mark.parametrize("folder", ["jobs", "fleet", "fleet/transport", "fleet/steps"])
def test_listing_names_what_is_there(folder: str) -> None:
    """Every module and folder has a line that says what it is for; none is left over."""
    names = listing()[folder]
    assert len(names) == len(set(names))
    there = {path.name for path in (PROJECT / folder).iterdir()} - HIDDEN
    assert set(names) == there
