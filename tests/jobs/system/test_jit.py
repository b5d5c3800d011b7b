"""jobs/system/jit.py: PostgreSQL compiles no statement of Fairshift."""

import pytest
from django.db import connection

from jobs.core import sql
from tests.jobs.scenes import at_once

pytestmark = pytest.mark.usefixtures("committed")

SHOW = "SHOW jit"


def test_a_new_connection_has_no_jit() -> None:
    """Of any thread, whatever the server's configuration says."""

    def shown() -> str:
        try:
            return str(sql.query(SHOW)[0]["jit"])
        finally:
            connection.close()

    assert at_once(shown, shown) == ["off", "off"]


def test_another_database_of_the_project_keeps_its_own() -> None:
    """Fairshift uses the default one only."""
    other = connection.copy(alias="reports")
    with other.cursor() as cursor:
        cursor.execute("SELECT setting = boot_val FROM pg_settings WHERE name = 'jit'")
        assert cursor.fetchone() == (True,)
    other.close()
