"""jobs/core/unmigrated.py: a missing table or column of a model is an error that says what to
run.
"""

import pytest
from django.db import ProgrammingError, connection

from jobs import submit
from jobs.core.unmigrated import Unmigrated
from jobs.models import Owner

pytestmark = pytest.mark.django_db


def changed(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def test_a_table_that_is_missing_is_named_with_the_command() -> None:
    """Of a submit as of any query; PostgreSQL's own error is the cause."""
    changed("ALTER TABLE jobs_owner RENAME TO elsewhere")
    with pytest.raises(
        Unmigrated, match=r"no table jobs_owner: run `python manage.py migrate`"
    ) as (found):
        submit("tests.add", owner="acme", x=1, y=2)
    assert repr(connection.settings_dict["NAME"]) in str(found.value)
    assert isinstance(found.value, ProgrammingError)
    assert isinstance(found.value.__cause__, ProgrammingError)


def test_a_column_that_is_missing_is_named_too() -> None:
    """As after an upgrade of Fairshift, when only some tables are as they were."""
    changed("ALTER TABLE jobs_owner RENAME COLUMN weight TO other")
    with pytest.raises(Unmigrated, match=r"no column jobs_owner\.weight"):
        Owner.objects.first()


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM no_such_table", "SELECT jobs_owner.wait FROM jobs_owner", "SELEC 1"]
)
def test_other_errors_are_left_as_they_are(sql: str) -> None:
    """No model has such a table or column: no migration would help."""
    with pytest.raises(ProgrammingError) as found:
        changed(sql)
    assert not isinstance(found.value, Unmigrated)
