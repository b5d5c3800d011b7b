"""Commands in this process: what they print, and Ctrl-C while they watch."""

import itertools
import time
from collections.abc import Callable

import pytest
from django.core.management import call_command

Printed = Callable[..., str]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """Call a command, such as "fleet owners", with more words; return what it prints."""

    def call(command: str, *words: str) -> str:
        call_command(*command.split(), *words)
        return capsys.readouterr().out

    return call


def press_ctrl_c(monkeypatch: pytest.MonkeyPatch, *, at_pause: int) -> None:
    """End every such pause of commands that watch; those before it take no time."""
    pauses = itertools.count(1)

    def sleep(_seconds: float) -> None:
        if next(pauses) % at_pause == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
