"""jobs/migrations: what they do does not change with the code."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import jobs.migrations

FOLDER = Path(jobs.migrations.__file__).parent
MIGRATIONS = sorted(FOLDER.glob("0*.py"))
PROJECT = {"config", "fleet", "jobs", "tests"}


def imported(source: str) -> Iterator[str]:
    """Yield the modules that a file imports, in functions too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module if node.module and not node.level else "jobs.migrations"


@pytest.mark.parametrize("path", MIGRATIONS, ids=lambda path: path.stem)
def test_a_migration_imports_only_field_definitions_of_the_project(path: Path) -> None:
    """All other code is edited later, and an installation of then would get other tables."""
    ours = {name for name in imported(path.read_text()) if name.partition(".")[0] in PROJECT}
    assert ours <= {"jobs.models.fields"}


def test_each_sql_file_is_run_by_the_migration_of_its_number() -> None:
    """And that one runs no other: statements elsewhere in `jobs` are edited."""
    for path in (FOLDER / "sql").iterdir():
        [owner] = [each for each in MIGRATIONS if each.name[:4] == path.name[:4]]
        assert path.stem in owner.read_text()
    assert not [each for each in MIGRATIONS if ".." in each.read_text()]
