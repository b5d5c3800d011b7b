"""docs/use/drop-in.md: its project runs on the fair transport with Redis alone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from django.conf import settings

from tests.commands import ran
from tests.docs import pages
from tests.docs.pages import PROJECT, read
from tests.flows.world import broker_client

pytestmark = pytest.mark.proof

PAGE = read("docs/use/drop-in.md")
block = partial(pages.block, PAGE)
BIN = Path(sys.executable).parent
KEPT = ("HOME", "LANG", "TMPDIR")
# A task of the scene's own, beside that of the page.
LOADED = """

@app.task
def loaded():
    import sys

    return sorted({"django.conf", "django.db", "psycopg", "jobs"} & sys.modules.keys())
"""


class Shop:
    """The project of the page in a folder, without any setting of Django or PostgreSQL."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {name: os.environ[name] for name in KEPT if name in os.environ} | {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "PYTHONPATH": str(PROJECT),
            "REDIS_URL": settings.REDIS_URL,
        }
        (folder / "shop.py").write_text(block("app") + LOADED)

    def python(self, code: str) -> str:
        """Return the output of code in a process of the project."""
        done = ran(sys.executable, "-c", code, folder=self.folder, environ=self.environ)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with broker_client() as client:
        client.flushdb()
        yield Shop(tmp_path)
        client.flushdb()


@pytest.fixture
def worker(shop: Shop) -> Iterator[subprocess.Popen[bytes]]:
    """The worker of the page; a call waits until it is ready."""
    log = shop.folder / "worker.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            block("worker", language="sh").split(),
            cwd=shop.folder,
            env=shop.environ,
            stdout=file,
            stderr=file,
        )
    yield process
    process.terminate()
    assert process.wait(200) == 0, log.read_text(errors="replace")


def test_calls_of_owners_return_their_results(shop: Shop, worker: subprocess.Popen[bytes]) -> None:
    """By the code of the page; neither process loads Django's settings, a database or rows."""
    ask = "from shop import loaded\nprint(loaded.delay().get(timeout=300), loaded())\n"
    calls = block("calls").replace("timeout=30", "timeout=300")
    assert shop.python(ask + calls) == "[] []\n"


def test_what_waits_is_listed_and_belongs_to_its_owner(shop: Shop) -> None:
    """Limits are set, and calls are seen before a worker takes them."""
    calls = "from shop import add\nwith fleet.acting_for('acme'):\n    sent = add.delay(1, 2)\n"
    seen = (
        "print(sent.id)\n"
        "acme = owners.snapshot(timeout=5).owners['acme']\n"
        "print(acme.weight, acme.max_running, acme.backlog)\n"
    )
    code = "from shop import app\n" + block("limits") + "import fleet\n" + calls + block("waiting")
    listed, sent, acme = shop.python(code + seen).splitlines()
    assert listed == f"{sent} shop.add ready (1, 2)"
    assert acme == "3.0 2 1"
