"""The generated parts of docs/ are those of the code."""

import re

import pytest

from tests.docs.generate import CLIENT_FILTERS, PAGES, UNSAID, client_filters, generated
from tests.docs.pages import PROJECT, read

SIMULATED = "docs/operate/scale.md"
"""Its generation takes seconds: it simulates workers."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(one, marks=pytest.mark.proof if one == SIMULATED else ()) for one in PAGES],
)
def test_generated_parts_are_those_of_the_code(page: str) -> None:
    """The page has what the code says now, and every setting has a purpose."""
    assert read(page) == generated(page), f"{page} is not up to date: run `make docs`"
    assert UNSAID not in read(page), f"say in {page} what the new setting is for"


def test_the_command_line_has_the_filters_of_the_api() -> None:
    assert read(CLIENT_FILTERS) == client_filters(), "run `make docs`"


def test_every_check_of_the_doctor_is_in_its_catalogue() -> None:
    """Those of the overview as well."""
    folder = PROJECT / "jobs/management/doctor"
    code = "".join(path.read_text() for path in folder.glob("*.py"))
    listed = re.findall(r"^- `(fairshift\.D\d+)`", read("docs/operate/doctor.md"), re.MULTILINE)
    assert set(listed) == set(re.findall(r'"(fairshift\.D\d+)"', code))


def test_every_check_is_in_the_catalogue() -> None:
    """The generator finds each check that the code can report."""
    code = "".join(path.read_text() for path in (PROJECT / "jobs/checks").glob("*.py"))
    listed = re.findall(r"^- `(fairshift\.[EW]\d+)`", read("docs/use/errors.md"), re.MULTILINE)
    assert set(listed) == set(re.findall(r'id="(fairshift\.[EW]\d+)"', code))
