"""compose/ as Compose itself reads it: merged, with the values of an .env, as one dict."""

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.commands import PROJECT, Done, ran

COMPOSE: Final = str(Path(sys.executable).with_name("docker-compose"))
SOURCES: Final = ("compose", "config", "fleet", "jobs", "templates", "manage.py")
SKIPPED: Final = shutil.ignore_patterns("__pycache__", ".env", "*.crt", "*.key", "token")


def checkout(folder: Path) -> Path:
    """Copy what an operator has of the project; return the copy's compose/, with a new .env."""
    for name in SOURCES:
        source = PROJECT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=SKIPPED)
        else:
            shutil.copy(source, folder / name)
    made = ran(str(folder / "compose/make-env"))
    assert made.returncode == 0, made.stderr
    return folder / "compose"


def asked(
    folder: Path, *words: str, files: tuple[str, ...] = ("compose.yaml",), profile: str = "*"
) -> Done:
    """Run a command of Compose that needs no engine, with no variable of this process.

    Without a profile, .env has it; `*` stands for all.
    """
    named = [word for name in files for word in ("--file", name)]
    named += ["--profile", profile] if profile else []
    return ran(COMPOSE, *named, *words, folder=folder, environ={"PATH": "/usr/bin:/bin"})


def resolved(folder: Path, *files: str, profile: str = "*") -> dict[str, Any]:
    """Return the whole configuration, or that of a profile; fails if Compose refuses it."""
    words = ("config", "--format", "json")
    answer = asked(folder, *words, files=files or ("compose.yaml",), profile=profile)
    assert answer.returncode == 0, answer.stderr
    # A dollar sign is doubled again, so that Compose could read its own answer.
    return json.loads(answer.stdout.replace("$$", "$"))  # type: ignore[no-any-return]


def in_order(services: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the services, each after those that it depends on."""
    done: set[str] = set()
    while waiting := [name for name in services if name not in done]:
        ready = [name for name in waiting if set(services[name].get("depends_on") or ()) <= done]
        assert ready, f"a circle of depends_on: {waiting}"
        done |= set(ready)
        yield from ready
