"""Each guard of a statement or a script, broken once: the tests named beside it fail.

`make chaos WHAT=mutations` plays the whole table, about seven seconds a row.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.conf import settings
from django.db import connection

from tests.mutations import (
    in_context,
    in_queue,
    in_recurring,
    in_retention,
    in_rollups,
    in_runs,
)
from tests.mutations.mutants import (
    PROJECT,
    TESTS_FAILED,
    break_guard,
    copied,
    guards,
    play,
)
from tests.mutations.mutation import Mutation

TABLE = (
    *(*in_runs.ROWS, *in_recurring.ROWS, *in_rollups.ROWS, *in_retention.ROWS),
    *(*in_queue.ROWS, *in_context.ROWS),
)
DATABASE = "mutants"


def each(mutations: list[Mutation]) -> Any:
    return pytest.mark.parametrize("mutation", mutations, ids=lambda row: row.guard)


@pytest.fixture(scope="module")
def servers(django_db_blocker: Any) -> Iterator[Mapping[str, str]]:
    """This run's servers, and on them a database that all mutants use one after the other."""
    yield {
        "DATABASE_URL": _url_of(DATABASE),
        "REDIS_URL": settings.REDIS_URL,
        "SECRET_KEY": settings.SECRET_KEY,
    }
    with django_db_blocker.unblock(), connection._nodb_cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS test_{DATABASE} WITH (FORCE)")


def _url_of(name: str) -> str:
    given = connection.settings_dict
    user, password = (quote(given[part] or "", safe="") for part in ("USER", "PASSWORD"))
    place = {"host": given["HOST"], "port": given["PORT"]}
    query = urlencode({part: value for part, value in place.items() if value})
    return f"postgresql://{user}:{password}@/{name}?{query}"


def test_every_guard_has_a_row_and_every_row_a_guard() -> None:
    """Each comment `guard: …` stands once, and the table has a row for it."""
    marked = sorted(name for name, _, _ in guards(PROJECT))
    assert marked == sorted(row.guard for row in TABLE)
    assert len(marked) == len(set(marked))
    for name, path, at in guards(PROJECT):
        row = next(row for row in TABLE if row.guard == name)
        assert path.read_text().splitlines()[at].strip() != row.instead, name


def test_every_test_of_the_table_exists() -> None:
    """A test that was renamed guards nothing any more."""
    for file, name in {tuple(test.split("::", 1)) for row in TABLE for test in row.tests}:
        assert (
            f"def {name.rpartition('::')[2].partition('[')[0]}(" in (PROJECT / file).read_text()
        ), (file, name)


@pytest.mark.proof
@each([row for row in TABLE if row.is_quick])
def test_some_of_the_table(mutation: Mutation, servers: Mapping[str, str], tmp_path: Path) -> None:
    """A few rows at every `make proof` show that the table is played as it should be."""
    be_noticed(mutation, servers, tmp_path)


@pytest.mark.chaos
@each(list(TABLE))
def test_a_broken_guard_fails_its_tests(
    mutation: Mutation, servers: Mapping[str, str], tmp_path: Path
) -> None:
    """Each of them, in the test itself and for the reason that the row tells."""
    be_noticed(mutation, servers, tmp_path)


def be_noticed(mutation: Mutation, servers: Mapping[str, str], folder: Path) -> None:
    copy = copied(folder)
    break_guard(mutation, copy)
    verdict = play(copy, mutation.tests, servers=servers)
    assert not verdict.errors, verdict.errors
    assert verdict.code == TESTS_FAILED, f"survived: {verdict.output[-3_000:]}"
    for test in mutation.tests:
        said = [text for name, text in verdict.failures.items() if _is_of(name, test)]
        assert said, f"{test} has noticed nothing: {verdict.output[-3_000:]}"
        assert any(mutation.fails_with in text for text in said), said


def _is_of(name: str, test: str) -> bool:
    """Say whether a test that has run is the named one, or one of its parameters."""
    return name == test or name.startswith(f"{test}[")
