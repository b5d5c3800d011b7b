"""jobs/pages/kit/pieces.py, jobs/templatetags: words, signs and pictures."""

from jobs.core.states import State
from jobs.pages.kit import pieces


def test_each_state_has_a_sign_of_its_own() -> None:
    """So it can be read without its colour."""
    assert set(pieces.SIGNS) == set(State)
    assert len({sign for sign, _tone in pieces.SIGNS.values()}) == len(State)


def test_bars_say_in_words_what_they_show() -> None:
    """Their parts fill the whole width."""
    bar = pieces.states_bar({"failed": 1, "succeeded": 3_000})
    assert 'aria-label="3,000 succeeded · 1 failed"' in bar
    assert 'x="99.967" width="0.033"' in bar
    assert "no runs" in pieces.states_bar({})
    share = pieces.share_bar(0.5, None)
    assert "received 50 %, entitled to –" in share and 'width="51.0"' in share
    assert 'width="102.0"' in pieces.share_bar(7, 0)
