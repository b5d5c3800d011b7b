"""What several machines need is installed where CI plays them."""

import re

from tests.docs.pages import read
from tests.machines.needs import PACKAGES


def test_ci_installs_every_package() -> None:
    """Without one of them, the machines would be skipped."""
    [listed] = re.findall(r"^packages=\(([^)]*)\)", read(".ci/run"), re.MULTILINE)
    assert set(PACKAGES) <= set(listed.split())
