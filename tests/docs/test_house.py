"""CONTRIBUTING.md: the listing of jobs and fleet names what is there, each line once."""

import pytest

from tests.docs.pages import PROJECT, blocks, read

HIDDEN = {"__pycache__", "py.typed"}


def listing() -> dict[str, list[str]]:
    """Return the names below each top folder of the listing, in its order."""
    [house] = blocks(read("CONTRIBUTING.md"), info="text house")
    found: dict[str, list[str]] = {}
    top = ""
    for line in house.text.splitlines():
        if line and not line.startswith(" "):
            top = line.split("/")[0]
            found[top] = []
        elif line:
            found[top].append(line.split()[0].rstrip("/"))
    return found


@pytest.mark.parametrize("top", ["jobs", "fleet"])
def test_listing_names_what_is_there(top: str) -> None:
    """Every module and folder has a line that says what it is for; none is left over."""
    names = listing()[top]
    assert len(names) == len(set(names))
    assert set(names) == {path.name for path in (PROJECT / top).iterdir()} - HIDDEN
