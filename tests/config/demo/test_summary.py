"""What the demo tells in the end."""

from dataclasses import replace
from io import StringIO

from config.demo.screen import Screen
from config.demo.summary import _show_upgrade
from tests.config.demo.test_upgrade_verdict import GOOD


def test_what_was_held_is_said_to_be_cancelled() -> None:
    """Its runs are shown as cancelled: nobody is to look for who did it."""
    stream = StringIO()
    _show_upgrade(GOOD, version=7, screen=Screen(stream))
    assert "held is cancelled at the end of the demo" in stream.getvalue()
    stream = StringIO()
    none = replace(GOOD, held_for_approval=0, held_by_freeze=0)
    _show_upgrade(none, version=7, screen=Screen(stream))
    assert "cancelled" not in stream.getvalue()
