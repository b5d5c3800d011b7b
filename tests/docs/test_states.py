"""docs/understand/states.md: the page and the moves of jobs/core/states.py say the same."""

import re

from jobs.core.states import FIRST, MOVES, State
from tests.docs.pages import blocks, code_words, read, table

START = "[*]"
ALLOWED = {(source.value, target.value) for source, targets in MOVES.items() for target in targets}
PAGE = read("docs/understand/states.md")


def drawn() -> list[tuple[str, str]]:
    [diagram] = blocks(PAGE, info="mermaid")
    return re.findall(r"^ *(\S+) --> (\S+)$", diagram.text, re.MULTILINE)


def listed() -> set[tuple[str, str]]:
    rows = table(PAGE, after="## Who makes each move")
    return {("".join(code_words(row[0])) or START, "".join(code_words(row[1]))) for row in rows}


def test_diagram_draws_every_move_and_no_other() -> None:
    """A move is in the diagram exactly when the table of moves allows it, and is drawn once."""
    moves = drawn()
    assert len(moves) == len(set(moves))
    assert {move for move in moves if START not in move} == ALLOWED


def test_diagram_begins_and_ends_as_runs_do() -> None:
    """A run is stored in one of the first states; what has no way out is where it stays."""
    moves = drawn()
    assert {target for source, target in moves if source == START} == set(FIRST)
    final = {state.value for state, targets in MOVES.items() if not targets}
    assert {source for source, target in moves if target == START} == final


def test_every_move_says_who_makes_it() -> None:
    """The list of who makes each move has all moves, and the ways in, and no other."""
    assert listed() == ALLOWED | {(START, state.value) for state in FIRST}


def test_every_state_has_a_meaning() -> None:
    """The table of meanings names each state once, in the order of the code."""
    rows = table(PAGE, after="# The states of a run")
    assert [code_words(row[0])[0] for row in rows] == [state.value for state in State]
