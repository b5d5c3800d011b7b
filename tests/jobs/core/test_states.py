"""jobs/core/states.py: the table of moves is a journey with ways in, ways out and no trap."""

from collections.abc import Iterable

import pytest

from jobs.core.states import (
    ENDED,
    FIRST,
    MOVES,
    REOPENABLE,
    State,
)


def reachable(starts: Iterable[State]) -> set[State]:
    """Return every state to which some chain of moves leads."""
    found, todo = set(starts), list(starts)
    while todo:
        for target in MOVES[todo.pop()] - found:
            found.add(target)
            todo.append(target)
    return found


def test_every_state_is_reachable() -> None:
    """From the states in which a run is stored, moves lead to every other."""
    assert reachable(FIRST) == set(State) == set(MOVES)


@pytest.mark.parametrize("state", State)
def test_every_state_leads_to_an_end(state: State) -> None:
    """No run can be stuck by the table itself."""
    assert reachable([state]) & ENDED


def test_ended_is_final_but_for_a_reopening() -> None:
    """An ended run moves to `queued` or nowhere, and what succeeded stays so."""
    assert {state for state in ENDED if MOVES[state]} == REOPENABLE
    assert all(MOVES[state] == {State.QUEUED} for state in REOPENABLE)
    assert State.SUCCEEDED not in REOPENABLE
