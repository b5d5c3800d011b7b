"""The command line of the demo."""

import pytest
from django.core.management import CommandError, call_command


@pytest.mark.parametrize(
    ("option", "value"),
    [("--devices", "0"), ("--devices", "100001"), ("--workers", "two"), ("--port", "70000")],
)
def test_wrong_options_are_refused_by_name(option: str, value: str) -> None:
    """The message names the option, its value and its limits; nothing is started."""
    with pytest.raises(CommandError, match=rf"{option}: '{value}' is no whole number from 1 to"):
        call_command("demo", option, value)
