"""The image, the installation and its caller, made once for all tests of compose/ that run it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.compose.image import Image, replay
from tests.compose.installation import ONE_SHOT, Installation, installed
from tests.compose.resolved import checkout, resolved

TASKS: Final = """
import time

from jobs import job


@job
def greet(name: str) -> str:
    return f"Hello {name}!"


@job(time_limit_seconds=60)
def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds
"""
FIRST: Final = """
from django.contrib.auth import get_user_model
from jobs.models import Owner
Owner.objects.create(slug="northwind")
get_user_model().objects.create_superuser("ada", password="only for this test")
"""


@pytest.fixture(scope="package")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """compose/ of a fresh checkout, with a new .env."""
    return checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="package")
def services(copy: Path) -> dict[str, Any]:
    """The services of compose.yaml, as Compose reads them."""
    return resolved(copy)["services"]


@pytest.fixture(scope="package")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The image, made from a fresh checkout by the Dockerfile's own commands."""
    folder = tmp_path_factory.mktemp("image")
    return replay(checkout(folder / "checkout").parent, folder)


@pytest.fixture(scope="package")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder compose/ of an operator who has followed docs/operate/compose.md."""
    compose = checkout(tmp_path_factory.mktemp("operated"))
    (compose / "tasks/own_tasks.py").write_text(TASKS)
    with (compose / ".env").open("a") as file:
        file.write("FAIRSHIFT_TASKS=own_tasks\nWORKERS=1\nWORKER_STOP_GRACE=30s\n")
    return compose


@pytest.fixture(scope="package")
def installation(
    image: Image, operated: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """All services of a large one but Grafana, started in Compose's order."""
    folder = tmp_path_factory.mktemp("rooms") / "all"
    with installed(operated, profile="large", image=image, folder=folder) as running:
        if not (operated / "prometheus/prometheus.yml").exists():
            running.services.pop("prometheus")
            running.services.pop("grafana")
        running.up()
        for room in running.rooms.values():
            if room.name.rpartition("-")[0] not in ONE_SHOT:
                running.wait_healthy(room)
        yield running


def new_token(installation: Installation) -> str:
    """Return a token of a new owner, made as docs/operate/compose.md says."""
    [web] = installation.of("web")
    made = web.run("python", "manage.py", "shell", "--command", FIRST)
    assert made.returncode == 0, made.stderr
    words = ["token", "create", "test", "--owner", "northwind", "--scopes", "read", "submit"]
    made = web.run("python", "manage.py", "fleet", *words, "--json")
    assert made.returncode == 0, made.stderr
    return str(json.loads(made.stdout)["token"])


class Caller:
    """The command `fairshift`, outside of all containers."""

    def __init__(self, installation: Installation) -> None:
        self.environ = {
            **os.environ,
            "FAIRSHIFT_URL": "http://localhost:8000",
            "FAIRSHIFT_TOKEN": new_token(installation),
        }
        self._command = installation.outside(sys.executable, "-m", "jobs.client")

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self._command, *words], env=self.environ, stdout=subprocess.PIPE, text=True
        )

    def ask(self, *words: str) -> list[dict[str, Any]]:
        """Run a command; return the JSON values that it has printed."""
        process = self.start(*words, "--json")
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output
        return [json.loads(line) for line in output.splitlines()]


@pytest.fixture(scope="package")
def caller(installation: Installation) -> Caller:
    return Caller(installation)
