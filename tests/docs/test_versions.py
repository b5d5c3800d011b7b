"""docs/operate/pools.md shows the tested versions of Celery, billiard and Kombu."""

import re

from fleet.versions import TESTED
from tests.compat.cells import DJANGOS, PYTHONS
from tests.docs.pages import code_words, read, table


def test_the_page_has_the_tested_versions() -> None:
    """The operator finds there the versions that a refusal at boot names."""
    rows = table(read("docs/operate/pools.md"), after="## Tested versions")
    found = {code_words(name)[0]: tuple(tested.split(", ")) for name, tested, _lines in rows}
    assert found == {**TESTED, "django": DJANGOS, "python": PYTHONS}


def test_the_locked_versions_are_tested_ones() -> None:
    """A change of the lock file needs tests of the new versions, and a new row in the table."""
    locked = dict(re.findall(r"^(\S+)==(\S+)", read("requirements.lock"), re.MULTILINE))
    for name, versions in TESTED.items():
        assert locked[name] in versions
