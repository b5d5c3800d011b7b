"""CONTRIBUTING.md lists the packages of jobs and fleet, and each says what it is for."""

import ast
from functools import cache
from pathlib import Path

import grimp
import pytest

from tests.docs.pages import PROJECT, blocks, read

WITHOUT_CODE = {"static", "templates", "migrations"}
MOST_PACKAGES = 22
MOST_FILES = 25
MOST_FLOORS = 10


def listing() -> dict[str, list[str]]:
    """Return the names below each folder that the listing opens, in its order."""
    [listed] = blocks(read("CONTRIBUTING.md"), info="text packages")
    found: dict[str, list[str]] = {}
    folder = ""
    for line in listed.text.splitlines():
        if not line:
            continue
        name = line.split()[0].rstrip("/")
        if line.startswith(" "):
            found[folder].append(name)
        else:
            found[folder := name] = []
    return found


def packages(*above: str) -> list[Path]:
    """Return the folders with code below these, at any depth."""
    inside = [path.parent for name in above for path in (PROJECT / name).rglob("__init__.py")]
    return sorted(path for path in inside if not WITHOUT_CODE & set(path.parts))


@pytest.mark.parametrize("folder", ["jobs", "fleet"])
def test_the_listing_names_each_folder(folder: str) -> None:
    """Each once, and no other; few enough to be read as a list."""
    names = listing()[folder]
    inside = [path for path in (PROJECT / folder).iterdir() if path.is_dir()]
    assert sorted(names) == sorted({path.name for path in inside} - {"__pycache__"})
    assert (
        sum((PROJECT / folder / name / "__init__.py").exists() for name in names) <= MOST_PACKAGES
    )


def test_a_package_says_what_it_is_for() -> None:
    """In its docstring; and it is small enough to be read as a list."""
    for path in packages("jobs", "fleet"):
        assert ast.get_docstring(ast.parse((path / "__init__.py").read_text())), path
        assert len(list(path.glob("*.py"))) <= MOST_FILES, path


def test_jobs_has_few_floors() -> None:
    """No chain of imports has more packages and single modules; the front door is one of them."""
    graph = grimp.build_graph("jobs")
    rooms: dict[str, set[str]] = {}
    for module in graph.modules:
        above = rooms.setdefault(_room(module), set())
        above |= {_room(it) for it in graph.find_modules_directly_imported_by(module)}

    @cache
    def chain(room: str) -> tuple[str, ...]:
        below = (chain(other) for other in rooms[room] - {room, "migrations"})
        return (room, *max(below, key=len, default=()))

    longest = max(map(chain, rooms), key=len)
    assert len(longest) <= MOST_FLOORS, " > ".join(longest)


def _room(module: str) -> str:
    """Return the package or single module directly in jobs; of the front door `jobs` itself."""
    return [*module.split("."), "jobs"][1]
