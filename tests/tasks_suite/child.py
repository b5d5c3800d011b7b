"""Run the suite in this folder on our backend. A script: the package `tests` is the suite's."""

from __future__ import annotations

import os
import sys
import unittest
from importlib import import_module
from typing import Any, Final

FOLDER, PACKAGE = sys.argv[1:]
OURS: Final = {
    "test_throws_keyboard_interrupt": "a worker records it, and lives",
    "test_cannot_get_result": "ours can",
    "test_cannot_refresh_result": "ours can",
    "test_cannot_pass_run_after": "ours can",
    "test_get_result_from_different_request": "ours can",
    "test_enqueue_logs": "the signal task_finished is not sent",
    "test_failed_logs": "the signal task_finished is not sent",
    "test_catches_exception": "the error is logged by Celery, not by django_tasks",
    "test_complex_exception": "likewise",
    "test_complex_return_value": "likewise",
    "test_meaning_of_life_view": "its addresses are those of another project",
    "test_refresh_result": "it calls refresh() in async code, where Django allows no query",
}
"""Tests that must differ, and why."""
MODULES: Final = ("test_tasks", "test_immediate_backend")

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
sys.path[0] = FOLDER


def main() -> int:
    """Set up Django and a database, put our backend in, and run the tests; return the status."""
    import django
    import pytest
    from django import test
    from django.test.runner import DiscoverRunner

    django.setup()
    from jobs.management.testing.harness import Fairshift
    from jobs.models import Owner

    class Owned(unittest.TestCase):
        """A test with an owner, and the worker of the pytest plugin."""

        def _callSetUp(self) -> None:  # noqa: N802  their classes have a setUp of their own
            Owner.objects.create(slug="suite")
            patch = pytest.MonkeyPatch()
            self.addCleanup(patch.undo)
            Scene.fairshift = Fairshift(patch)
            self.addCleanup(Scene.fairshift.close)
            super()._callSetUp()  # type: ignore[misc]

    class Scene(Owned, test.TestCase):
        """What their SimpleTestCase is here: it has a database."""

    class Committing(Owned, test.TransactionTestCase):
        """What their TransactionTestCase is here."""

    Scene.fairshift: Any = None
    # The settings of this project may have loaded its own package of that name.
    for name in [name for name in sys.modules if name.partition(".")[0] in {"tests", "tasks"}]:
        del sys.modules[name]
    sys.path.insert(0, FOLDER)
    test.SimpleTestCase, test.TransactionTestCase = Scene, Committing
    _install(Scene)
    runner = DiscoverRunner(verbosity=0, interactive=False)
    databases = runner.setup_databases()
    try:
        suite = unittest.TestSuite(_tests(MODULES))
        result = unittest.TextTestRunner(verbosity=1).run(suite)
    finally:
        runner.teardown_databases(databases)
    print(f"{PACKAGE}: {result.testsRun} tests, {len(OURS)} names left out")
    return 0 if result.wasSuccessful() and result.testsRun else 1


def _tests(modules: tuple[str, ...]) -> list[unittest.TestCase]:
    parent = "tasks" if PACKAGE == "django.tasks" else "tests.tests"
    loader = unittest.TestLoader()
    found = []
    for name in modules:
        for suite in loader.loadTestsFromModule(import_module(f"{parent}.{name}")):
            found += [one for one in suite if one._testMethodName not in OURS]
    return found


def _install(scene: Any) -> None:
    """Put our backend in the place of both of theirs."""
    from jobs import django_tasks

    name = "Backend" if PACKAGE == "django.tasks" else "BackportBackend"
    ours: Any = getattr(django_tasks, name)
    dummy: Any = import_module(f"{PACKAGE}.backends.dummy")
    immediate: Any = import_module(f"{PACKAGE}.backends.immediate")

    class Stored(ours):
        """Stores, as the dummy one does, and lists what was stored."""

        def __init__(self, alias: str, params: dict[str, Any]) -> None:
            super().__init__(alias, params)
            self.owner, self.max_attempts = "suite", 1
            self.results: list[Any] = []

        def clear(self) -> None:
            self.results.clear()

        def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
            result = super().enqueue(task, args, kwargs)
            self.results.append(result)
            return result

        def _queue(self, name: str) -> str:
            return ""  # theirs are no queues of this project

    class RunAtOnce(Stored):
        """Runs at once, as the immediate one does, by the worker of the pytest plugin."""

        def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
            result = super().enqueue(task, args, kwargs)
            scene.fairshift.drain()
            result.refresh()
            self.results[-1] = result
            return result

    Stored.__name__ = Stored.__qualname__ = "DummyBackend"
    RunAtOnce.__name__ = RunAtOnce.__qualname__ = "ImmediateBackend"
    dummy.DummyBackend, immediate.ImmediateBackend = Stored, RunAtOnce


if __name__ == "__main__":
    sys.exit(main())
