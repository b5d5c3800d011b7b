"""CONTRIBUTING.md: its table has a line for each target of the Makefile."""

import re
import subprocess

from tests.docs.pages import PROJECT, code_words, read, table

# The first one is told beside the table, the second is for readers of README.md.
TOLD_ELSEWHERE = {"help", "demo"}


def test_table_names_the_targets() -> None:
    """A newcomer finds every target there, and none that is gone."""
    targets = re.findall(r"^([a-z-]+):.*## ", read("Makefile"), re.MULTILINE)
    rows = table(read("CONTRIBUTING.md"), after="## Set up")
    listed = [code_words(row[0])[0] for row in rows]
    assert len(listed) == len(set(listed))
    assert set(listed) == {f"make {name}" for name in set(targets) - TOLD_ELSEWHERE}


def test_the_version_of_django_is_a_parameter() -> None:
    """In an environment of its own, so that the locked one stays as it is."""
    command = ["make", "--dry-run", "test", "DJANGO=6.0"]
    said = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    assert ".venv-django-6.0/bin/python -m tests.lanes" in said
    assert ".venv-django-6.0/bin/python -m pip install" in said and '"Django==6.0.*"' in said
    assert ".venv/" not in said
