"""What the demo shows, on a stream that is no terminal."""

from collections.abc import Sequence
from io import StringIO

from config.demo.screen import Line, Part, Screen

HALF_WAY = Line(
    "ruleset 42", total=3000, succeeded=1490, failed=10, running=16, retrying=4, seconds=10.0
)


def shown(
    lines: Sequence[Line], parts: Sequence[Part] = (), *, width: int = 0, said: str = ""
) -> str:
    """Return what a screen shows: with a width, on a terminal."""
    stream = StringIO()
    if width:
        stream.isatty = lambda: True  # type: ignore[method-assign]
    screen = Screen(stream)
    if width:
        screen.console.width = width
    with screen.follow() as show:
        show(lines, parts)
    if said:
        screen.say(said)
    return stream.getvalue()


def test_what_is_not_done_running_or_retrying_waits() -> None:
    """The counts of a line add up to its total; its rate is the average since the submit."""
    assert (HALF_WAY.done, HALF_WAY.waiting, HALF_WAY.rate) == (1500, 1480, 150.0)


def test_failures_are_named_and_markup_is_text() -> None:
    """Dead letters show in the line; square brackets in a label stay what they are."""
    text = shown([HALF_WAY], said="[bold]label[/]")
    assert "10 failed" in text and "[bold]label[/]" in text


def test_bars_draw_a_row_a_submission_within_80_columns() -> None:
    """On a terminal each submission has one row that shows all its counts."""
    good = Line("lab ruleset 42", 3000, 3000, failed=0, running=0, retrying=0, seconds=123.4)
    narrow = shown([good], width=80)
    assert all(text in narrow for text in ("3000/3000", "123.4 s", "retrying", "24"))
    assert "failed" not in narrow
    assert "failed" in shown([good, HALF_WAY], width=100)
