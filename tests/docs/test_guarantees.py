"""docs/understand/guarantees.md: each promise names tests that are there."""

import re

from tests.docs.pages import PROJECT, code_words, read

PAGE = "docs/understand/guarantees.md"
TESTS = PROJECT / "tests"
LIST = read(PAGE).partition("\n- ")[2].partition("\n\n")[0].replace("\n  ", " ").split("\n- ")
ROWS = [entry.split(" · ") for entry in LIST]
"""Of each promise: its number and words, its tests, its plays."""
NAMED = {
    path: not elsewhere
    for row in ROWS
    for path, elsewhere in re.findall(r"`([\w/]+)`(†)?", row[1])
    if "/" in path
}
"""The tests of promises; whether `make test` plays them."""


def test_no_promise_is_missing() -> None:
    """G1 to G25 and G27 to G31 each have an entry, which names a test or a play."""
    numbers = (*range(1, 26), 27, 28, 29, 30, 31)
    found = {number for row in ROWS for number in re.findall(r"^\*\*(G\d+)\*\* ", row[0])}
    assert found == {f"G{number}" for number in numbers}
    assert all(code_words(tests + plays) for _promise, tests, plays in ROWS)


def test_tests_are_there() -> None:
    """Every path that a promise names is a test, or a folder of tests."""
    paths = [word for row in ROWS for word in code_words(row[1]) if not word.startswith("make ")]
    missing = [path for path in paths if not (TESTS / path).is_dir()]
    assert [path for path in missing if not (TESTS / f"{path}.py").is_file()] == []


def test_make_test_plays_them() -> None:
    """A file of which it plays no scene is said to be for `make proof`."""
    found = {path: TESTS / f"{path}.py" for path in NAMED if (TESTS / f"{path}.py").is_file()}
    played = {path: not _only_in_proof(file.read_text()) for path, file in found.items()}
    assert played == {path: NAMED[path] for path in found}


def test_make_test_plays_no_other_flows() -> None:
    """Processes take most of its time: a flow that no promise names is for `make proof`."""
    flows = {f"flows/{path.stem}": path.read_text() for path in TESTS.glob("flows/test_*.py")}
    others = {flow: text for flow, text in flows.items() if flow not in NAMED}
    assert [flow for flow, text in others.items() if not _only_in_proof(text)] == []


def _only_in_proof(text: str) -> bool:
    """Say whether the file, or each of its scenes that chaos does not play, is marked."""
    scenes = [block for block in text.split("\n\n\n") if "def test_" in block]
    return bool(re.search(r"^pytestmark = .*pytest\.mark\.proof", text, re.MULTILINE)) or all(
        "pytest.mark.proof" in scene or "@pytest.mark.chaos\n" in scene for scene in scenes
    )


def test_plays_are_there() -> None:
    """`make chaos WHAT=` finds every play that a promise names: a file or a function."""
    files = [path for path in TESTS.rglob("test_*.py") if "mark.chaos" in path.read_text()]
    names = " ".join(f"{path} {path.read_text()}" for path in files)
    cells = [word for row in ROWS for word in code_words(row[2]) if not word.startswith("make ")]
    plays = [play for cell in cells for play in cell.split(" or ")]
    assert [play for play in plays if not re.search(rf"test_\w*{play}", names)] == []
