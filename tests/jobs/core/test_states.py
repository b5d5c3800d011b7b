"""jobs/core/states.py: the table of moves is a journey with ways in, ways out and no trap."""

from collections.abc import Iterable

from jobs.core.states import ENDED, FIRST, MOVES, REOPENABLE, State


def reachable(starts: Iterable[State]) -> set[State]:
    """Return every state to which some chain of moves leads."""
    found, todo = set(starts), list(starts)
    while todo:
        for target in MOVES[todo.pop()] - found:
            found.add(target)
            todo.append(target)
    return found


def test_every_state_is_reachable_and_leads_to_an_end() -> None:
    """From the states in which a run is stored; no run can be stuck by the table itself."""
    assert reachable(FIRST) == set(State) == set(MOVES)
    assert [state for state in State if not reachable([state]) & ENDED] == []


def test_ended_is_final_but_for_a_reopening() -> None:
    """An ended run moves to `queued` or nowhere, and what succeeded stays so."""
    assert {state for state in ENDED if MOVES[state]} == REOPENABLE
    assert all(MOVES[state] == {State.QUEUED} for state in REOPENABLE)
    assert State.SUCCEEDED not in REOPENABLE
