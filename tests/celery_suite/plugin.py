"""A pytest plugin for both sides: limits the time of a test and, on the fair side, sets it up."""

import os

import pytest

if os.environ["CELERY_SUITE_SIDE"] == "fair":
    import fleet

    fleet.use_fair_transport()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shorten Celery's own time limits; a test that sets a shorter one keeps it."""
    longest = config.getoption("timeout")
    for item in items:
        own = item.get_closest_marker("timeout")
        seconds = (own.kwargs.get("timeout") or own.args[0]) if own else longest
        item.add_marker(pytest.mark.timeout(min(seconds, longest)), append=False)
