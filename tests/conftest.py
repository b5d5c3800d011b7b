"""Settings of all tests."""

import gc
import json
import os
from collections import defaultdict
from collections.abc import Generator
from contextlib import suppress
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pytest
from django.conf import settings as project
from django.utils import translation
from hypothesis import settings

from tests.own_servers import IS_DATABASE_OWN

# One busy machine must not fail what another one passes: the same examples each time, at any speed.
# `--hypothesis-profile random` looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None)
settings.load_profile("same")


RARELY: Final = (20_000, 20, 20)
"""The collector's thresholds: Python's own, 700, 10 and 10, cost a twentieth of all CPU time."""


ROOT: Final = Path(__file__).parent
WAITING: Final = ("flows", "chaos", "compose", "contrast", "machines", "browser")
"""Folders whose tests mostly wait for processes, limits and leases."""


def pytest_sessionstart(session: pytest.Session) -> None:
    """In a lane, import a part of the test files first, each lane a different one.

    After a clone, pytest must compile all of them (8 s of CPU time), and stores the results. So the
    lanes share this work.
    """
    lane = os.environ.get("PYTEST_XDIST_WORKER", "")
    if lane and not session.config.option.collectonly:
        number, count = int(lane.removeprefix("gw")), int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        for path in sorted(ROOT.rglob("test_*.py"))[number::count]:
            # pytest reports the error when it collects the file.
            with suppress(Exception, pytest.skip.Exception, pytest.fail.Exception):
                import_module(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files so that lanes always have one that waits beside one that computes.

    The files of each kind are spread evenly: two browsers side by side fill two cores. Lanes take
    whole files from the beginning.
    """
    files = [list(group) for _, group in groupby(items, key=lambda item: item.path)]
    kinds: dict[str, list[list[pytest.Item]]] = defaultdict(list)
    for file in files:
        folder = file[0].path.relative_to(ROOT).parts[0]
        kinds[folder if folder in WAITING else ""].append(file)
    places = [
        (number / len(kind), file) for kind in kinds.values() for number, file in enumerate(kind)
    ]
    items[:] = [item for _, file in sorted(places, key=lambda place: place[0]) for item in file]


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[
    None, dict[str, Any] | None, dict[str, Any] | None
]:
    """A lane sends its reports as UTF-8, which tests with lone surrogates in their logs are not."""
    data = yield
    if data and data.get("outcome") == "passed":
        data["sections"] = []
    elif data and data.get("outcome") == "failed":
        text = json.dumps(data, ensure_ascii=False, default=str).encode(errors="replace")
        data = json.loads(text)
    return data


def pytest_configure(config: pytest.Config) -> None:
    """Each client of Django's loads the middleware: it must not read all static files then."""
    project.WHITENOISE_AUTOREFRESH = True
    config.pluginmanager.register(Heap())
    gc.disable()  # until all tests are collected: they stay


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_keepdb: bool) -> bool:
    """The test database is there already, and goes with its server."""
    return django_db_keepdb or IS_DATABASE_OWN


if IS_DATABASE_OWN:

    @pytest.fixture(scope="session")
    def django_db_modify_db_settings_xdist_suffix() -> None:
        """No suffix of the lane: each lane has a server, whose database would be made anew."""


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """The test database, as if it had been migrated just now."""
    from tests.periodic import make_cursor  # the apps are loaded later than this file

    with django_db_blocker.unblock():
        make_cursor()


class Heap:
    """What stays in memory to the end of the run: Python's collector need not visit it again.

    The forks of pools and processes share it; a visit would copy it. A pool of Celery's collects
    before each fork, which took 0.6 s of CPU time after 5,000 tests.
    """

    def __init__(self) -> None:
        self.file: Path | None = None

    def pytest_collection_finish(self) -> None:
        """Modules and tests stay."""
        gc.enable()
        gc.set_threshold(*RARELY)
        _freeze()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """What the tests of another file have left stays too: reports, caches, modules."""
        if item.path != self.file:
            self.file = item.path
            _freeze()


def _freeze() -> None:
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown() -> None:
    """A request of Django's test client leaves the reader's language: the next test has none."""
    translation.deactivate()
