"""jobs/client/terminal.py: no text that others wrote moves a cursor or hides a line."""

import json

import pytest

from jobs.client.terminal import printable, say


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain 1 %", "plain 1 %"),
        ("Zürich – 東京 🚀", "Zürich – 東京 🚀"),
        ("\x1b[2Jgone", "\\u001b[2Jgone"),
        ("two\nlines\r", "two\\u000alines\\u000d"),
        ("\x9b31m", "\\u009b31m"),
        ("\x7f\x00", "\\u007f\\u0000"),
        ("a\u202eb\u2028", "a\\u202eb\\u2028"),
        ("\U000e0001", "\\U000e0001"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_a_terminal_obeys_is_shown_as_an_escape(line: str, shown: str) -> None:
    """Letters of all languages stay as they are."""
    assert printable(line) == shown


def test_a_line_of_json_stays_the_same_value(capsys: pytest.CaptureFixture[str]) -> None:
    """Programs that read it get the text as it is."""
    value = {"name": "\x1b[2J\x9b\u202e é"}
    say(json.dumps(value, ensure_ascii=False))
    line = capsys.readouterr().out
    assert line.count("\n") == 1 and printable(line[:-1]) == line[:-1]
    assert json.loads(line) == value
