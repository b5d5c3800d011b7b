"""Settings of all tests."""

import gc

from hypothesis import settings

# One busy machine must not fail what another one passes: the same examples each time, at any speed.
# `--hypothesis-profile random` looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None)
settings.load_profile("same")


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: the collector need not visit them any more."""
    gc.collect()
    gc.freeze()
