"""What pytest loads: the fixture `fairshift`. Imports nothing of Django before a test wants it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from jobs.management.testing.harness import Fairshift


@pytest.fixture
def fairshift(
    db: Any,  # noqa: ARG001  pytest-django's: only in its life are queries allowed
) -> Iterator[Fairshift]:
    """Fairshift without Redis: submits are stored; the test runs them, and moves the clock.

    Works with pytest-django's `db` and with real commits (`transactional_db`). What it changes in
    the process and in PostgreSQL ends with the test.
    """
    from jobs.management.testing.harness import Fairshift

    # Not the fixture `monkeypatch`: it may be undone after the database is closed.
    with pytest.MonkeyPatch.context() as patch:
        found = Fairshift(patch)
        try:
            yield found
        finally:
            found.close()
