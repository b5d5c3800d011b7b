"""Settings of all tests."""

import gc

from django.conf import settings as project
from django.utils import translation
from hypothesis import settings

# One busy machine must not fail what another one passes: the same examples each time, at any speed.
# `--hypothesis-profile random` looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None)
settings.load_profile("same")


def pytest_configure() -> None:
    """Each client of Django's loads the middleware: it must not read all static files then."""
    project.WHITENOISE_AUTOREFRESH = True


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: the collector need not visit them any more."""
    gc.collect()
    gc.freeze()


def pytest_runtest_teardown() -> None:
    """A request of Django's test client leaves the reader's language: the next test has none."""
    translation.deactivate()
