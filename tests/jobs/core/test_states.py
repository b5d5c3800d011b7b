"""jobs/core/states.py: the table of moves is a journey with ways in, ways out and no trap."""

from collections.abc import Iterable

import pytest

from jobs.core.states import (
    ACTIVE,
    DELAYED,
    ENDED,
    FIRST,
    MOVES,
    REOPENABLE,
    WAITING,
    State,
    sources,
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


def test_each_state_is_waiting_active_or_ended() -> None:
    """Nobody works on it, a worker holds it, or it is over: exactly one of the three."""
    groups = [WAITING, ACTIVE, ENDED]
    assert sum(map(len, groups)) == len(set().union(*groups)) == len(State)


def test_what_has_not_ended_can_be_cancelled() -> None:
    """What waits is cancelled at once, what a worker holds is asked to stop."""
    assert sources(State.CANCELLED) >= WAITING
    assert sources(State.CANCELLING) == ACTIVE - {State.CANCELLING}


def test_what_is_delayed_can_be_queued_or_expire() -> None:
    """Promotion and expiry can move everything that they look for."""
    assert sources(State.QUEUED) >= DELAYED
    assert sources(State.EXPIRED) == FIRST


def test_sources_turn_the_table_around() -> None:
    """A state is a source of each of its targets, and of no other."""
    for state, targets in MOVES.items():
        assert targets == {target for target in State if state in sources(target)}
