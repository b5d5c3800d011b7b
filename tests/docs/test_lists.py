"""Lists and tables of pages name what the code has, each once and in its order."""

import re

from fleet.crash_points import KNOWN
from fleet.versions import TESTED
from jobs.core.states import FIRST, MOVES, State
from tests.benchmarks.members import MEMBERS
from tests.celery_suite.differences import DIFFERENCES
from tests.compat.cells import DJANGOS, PYTHONS
from tests.docs.pages import code_words, entries, read, table

STATES = read("docs/understand/states.md")


def test_each_benchmark_says_what_it_measures() -> None:
    """The table of understand/benchmarks.md has a row for each member."""
    rows = table(read("docs/understand/benchmarks.md"), after="## Last figures")
    assert [code_words(row[0]) for row in rows] == [[member] for member in MEMBERS]
    assert all(row[1] for row in rows)


def test_differences_are_those_of_the_page() -> None:
    """`make celery-suite` allows what use/drop-in.md says, and nothing else."""
    rows = table(read("docs/use/drop-in.md"), after="## Tests that differ")
    assert {code_words(test)[0]: reason for test, reason in rows} == DIFFERENCES


def test_each_crash_point_says_what_brings_a_run_on() -> None:
    """The list of understand/journey.md follows the journey."""
    page = read("docs/understand/journey.md")
    moments = entries(page, after="## If a process dies there")
    assert [code_words(name)[0] for name, _ in moments] == list(KNOWN)
    assert all(all(text.split(" → ")) and " → " in text for _, text in moments)


def test_every_move_says_who_makes_it() -> None:
    """The list of actors has each move, each way in, and no other."""
    moves = [name.split(" → ") for name, _ in entries(STATES, after="## Who makes each move")]
    listed = {
        (source, "".join(code_words(target)))
        for sources, target in moves
        for source in code_words(sources) or ["[*]"]
    }
    allowed = {(source.value, each.value) for source, targets in MOVES.items() for each in targets}
    assert listed == allowed | {("[*]", state.value) for state in FIRST}


def test_every_state_has_a_meaning() -> None:
    """The table of meanings names each state."""
    listed = entries(STATES, after="# The states of a run")
    assert [code_words(name)[0] for name, _ in listed] == [state.value for state in State]


def test_the_page_has_the_tested_versions() -> None:
    """The operator finds in operate/pools.md the versions that a refusal at boot names."""
    rows = table(read("docs/operate/pools.md"), after="## Tested versions")
    found = {code_words(name)[0]: tuple(tested.split(", ")) for name, tested, _lines in rows}
    assert found == {**TESTED, "django": DJANGOS, "python": PYTHONS}


def test_the_locked_versions_are_tested_ones() -> None:
    """A change of the lock file needs tests of the new versions, and a new row in the table."""
    locked = dict(re.findall(r"^(\S+)==(\S+)", read("requirements.lock"), re.MULTILINE))
    for name, versions in TESTED.items():
        assert locked[name] in versions
