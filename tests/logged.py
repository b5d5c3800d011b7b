"""The library's log lines by `fleet.logs`, as names and facts."""

from typing import Any

import pytest


def logged(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Return the event, level and facts of each such line of this test."""
    return [
        {"event": record.event, "level": record.levelname, **record.facts}
        for record in caplog.records
        if hasattr(record, "event") and hasattr(record, "facts")
    ]
