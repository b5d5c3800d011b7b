"""jobs/core/unmigrated.py: the error for a missing table or column says what to run."""

import pytest
from django.db import ProgrammingError, connection

from jobs import submit
from jobs.core import sql
from jobs.core.unmigrated import Unmigrated
from jobs.models import Owner

pytestmark = pytest.mark.django_db


def test_a_table_that_is_missing_is_named_with_the_command() -> None:
    """Of a submit as of any query; PostgreSQL's own error is the cause."""
    sql.query("ALTER TABLE jobs_owner RENAME TO elsewhere")
    with pytest.raises(
        Unmigrated, match=r"no table jobs_owner: run `python manage.py migrate`"
    ) as (found):
        submit("tests.add", owner="acme", x=1, y=2)
    assert repr(connection.settings_dict["NAME"]) in str(found.value)
    assert isinstance(found.value, ProgrammingError)
    assert isinstance(found.value.__cause__, ProgrammingError)


def test_a_column_that_is_missing_is_named_too() -> None:
    """As after an upgrade of Fairshift, when only some tables are as they were."""
    sql.query("ALTER TABLE jobs_owner RENAME COLUMN weight TO other")
    with pytest.raises(Unmigrated, match=r"no column jobs_owner\.weight"):
        Owner.objects.first()


@pytest.mark.parametrize(
    "statement",
    ["SELECT * FROM no_such_table", "SELECT jobs_owner.wait FROM jobs_owner", "SELEC 1"],
)
def test_other_errors_are_left_as_they_are(statement: str) -> None:
    """No model has such a table or column: no migration would help."""
    with pytest.raises(ProgrammingError) as found:
        sql.query(statement)
    assert not isinstance(found.value, Unmigrated)
