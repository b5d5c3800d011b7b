"""Messages to the queue of notices, caught where they would be published."""

from collections.abc import Iterator
from typing import Any

import pytest

from jobs.system.notices import rounds
from tests.receivers import Receiver, receiver


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of the messages that rounds send, in order."""
    caught: list[dict[str, Any]] = []

    def publish(given: Any) -> int:
        caught.extend(kwargs for _task, kwargs, _id, _headers in given)
        return len(given)

    monkeypatch.setattr(rounds, "_publish", publish)
    return caught


@pytest.fixture
def ears() -> Iterator[Receiver]:
    """A receiver that takes everything."""
    with receiver() as made:
        yield made
