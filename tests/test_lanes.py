"""The lanes of `make test`: each test is taken once."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.lanes import ROOT, lanes_in, taken

FILES = ("docs/test_a.py", "flows/test_b.py", "flows/test_c.py", "jobs/test_d.py", "test_e.py")


def items(*names: str) -> list[Any]:
    """Return two tests of each file, side by side."""
    return [SimpleNamespace(path=ROOT / name) for name in names for _ in range(2)]


def lanes(folder: Path) -> list[Path]:
    found = lanes_in(folder)
    for lane in found:
        lane.parent.mkdir(exist_ok=True)
    return found


def test_each_test_is_taken_by_one_lane(tmp_path: Path) -> None:
    """Also those of a file that stands apart, and in whatever folder a file is."""
    given = items(*FILES, *FILES[:2])
    running = [taken(given, lane) for lane in lanes(tmp_path)]
    found: list[Any] = []
    while running:
        for lane in tuple(running):
            item = next(lane, None)
            if item is None:
                running.remove(lane)
            else:
                found.append(item)
    assert sorted(map(id, found)) == sorted(map(id, given))


def test_a_lane_begins_with_its_own_kind_and_ends_with_the_other(tmp_path: Path) -> None:
    """So no lane waits while another has work left."""
    flows, *_, others = lanes(tmp_path)
    order = [item.path.relative_to(ROOT).as_posix() for item in taken(items(*FILES), flows)]
    assert order[::2] == [FILES[1], FILES[2], FILES[0], FILES[3], FILES[4]]
    assert list(taken(items(*FILES), others)) == []
