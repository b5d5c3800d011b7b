"""A receiver of webhooks, and the messages of rounds, caught where they would be published."""

from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from jobs.system.notices import rounds
from tests.jobs.system.notices.scenes import Notices
from tests.receivers import receiver


@pytest.fixture
def notices(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notices]:
    """Rounds whose messages wait in a list, and a receiver that takes everything."""
    with receiver() as ears:
        made = Notices(settings, ears)

        def publish(given: Any) -> int:
            made.messages.extend(kwargs for _task, kwargs, _id, _headers in given)
            return len(given)

        monkeypatch.setattr(rounds, "_publish", publish)
        yield made
