"""docs/understand/states.md: the page and the moves of jobs/core/states.py say the same."""

from jobs.core.states import FIRST, MOVES, State
from tests.docs.pages import code_words, entries, read

START = "[*]"
ALLOWED = {(source.value, target.value) for source, targets in MOVES.items() for target in targets}
PAGE = read("docs/understand/states.md")


def listed() -> set[tuple[str, str]]:
    moves = [name.split(" → ") for name, _ in entries(PAGE, after="## Who makes each move")]
    return {
        (source, "".join(code_words(target)))
        for sources, target in moves
        for source in code_words(sources) or [START]
    }


def test_every_move_says_who_makes_it() -> None:
    """The list of actors has each move, each way in, and no other."""
    assert listed() == ALLOWED | {(START, state.value) for state in FIRST}


def test_every_state_has_a_meaning() -> None:
    """The table of meanings names each state once, in the order of the code."""
    listed = entries(PAGE, after="# The states of a run")
    assert [code_words(name)[0] for name, _ in listed] == [state.value for state in State]
