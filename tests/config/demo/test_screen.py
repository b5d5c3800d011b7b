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
    with screen.follow() as progress:
        progress.show(lines, parts)
    if said:
        screen.say(said)
    return stream.getvalue()


def test_what_is_not_done_running_or_retrying_waits() -> None:
    """The counts of a line add up to its total; its rate is the average since the submit."""
    assert (HALF_WAY.done, HALF_WAY.waiting, HALF_WAY.rate) == (1500, 1480, 150.0)


def test_the_first_moment_has_no_rate() -> None:
    """No time has passed: no division by zero."""
    assert Line("x", total=1, succeeded=1, failed=0, running=0, retrying=0, seconds=0).rate == 0


def test_lines_are_spaced_and_the_last_one_is_never_lost() -> None:
    """Of many updates within two seconds the first and the last are printed."""
    stream = StringIO()
    with Screen(stream).follow() as progress:
        for succeeded in range(5):
            progress.show([Line("lab", 4, succeeded, 0, 0, 0, seconds=1.0)])
    assert stream.getvalue().splitlines() == [
        "  1.0 s  lab: 0/4 done, 0 running, 4 waiting, 0 retrying (0/s)",
        "  1.0 s  lab: 4/4 done, 0 running, 0 waiting, 0 retrying (4/s)",
    ]


def test_what_is_held_is_not_said_to_wait_for_a_worker() -> None:
    """Held runs have a column of their own, once there are any."""
    line = Line("firmware 42", 300, 100, 0, running=6, retrying=0, seconds=2.0, held=110)
    assert line.waiting == 84
    assert shown([line]).splitlines() == [
        "  2.0 s  firmware 42: 100/300 done, 6 running, 84 waiting, 0 retrying, 110 held (50/s)"
    ]


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


def test_each_owner_has_its_part_beside_what_it_is_entitled_to() -> None:
    """On a terminal a bar, elsewhere a line; of a lone owner there is nothing to compare."""
    parts = [Part("acme", 0.5, 0.48, waiting=0, running=4), Part("globex", 0.5, 0.52, 2990, 12)]
    assert "share received / entitled: acme 48% / 50%, globex 52% / 50%" in shown([HALF_WAY], parts)
    assert "share" not in shown([HALF_WAY], parts[:1])
    bars = shown([HALF_WAY], parts, width=80)
    assert all(text in bars for text in ("worker time", "48%", "2990", "running"))


def test_an_owner_without_work_has_a_dash_in_place_of_shares() -> None:
    """0% of 0% would read as an owner that is starved."""
    parts = [Part("acme", 0, 0, waiting=0, running=0, has_work=False), Part("globex", 1, 1, 9, 3)]
    assert "share received / entitled: acme –, globex 100% / 100%" in shown([HALF_WAY], parts)
    bars = shown([HALF_WAY], parts, width=80)
    assert "–" in bars and "0%  " not in bars.replace("100%", "")
