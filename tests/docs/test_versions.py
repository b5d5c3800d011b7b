"""docs/operate/pools.md shows the tested versions of Celery, billiard and Kombu."""

import re

from fleet.versions import TESTED
from tests.docs.pages import code_words, read, table


def test_the_page_has_the_tested_versions() -> None:
    """The operator reads there what the refusal at a boot names."""
    rows = table(read("docs/operate/pools.md"), after="## Tested versions")
    assert {code_words(name)[0]: tuple(found.split(", ")) for name, found in rows} == TESTED


def test_the_locked_versions_are_tested_ones() -> None:
    """Who changes the lock file tests the new versions, and adds them to the table."""
    locked = dict(re.findall(r"^(\S+)==(\S+)", read("requirements.lock"), re.MULTILINE))
    for name, versions in TESTED.items():
        assert locked[name] in versions


def test_each_of_them_is_bounded_for_a_project_of_your_own() -> None:
    """No installation takes a minor version that nobody has looked at."""
    bounds = re.findall(r'^    "(\w+)>=[\d.]+,<[\d.]+",$', read("pyproject.toml"), re.MULTILINE)
    assert TESTED.keys() <= set(bounds)
