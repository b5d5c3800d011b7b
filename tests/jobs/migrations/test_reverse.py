"""jobs/migrations: all of them can be taken back."""

import pytest
from django.core.management import call_command
from django.db import connection

_LEFT = """
SELECT relname FROM pg_class WHERE relname LIKE 'jobs\\_%'
UNION SELECT proname FROM pg_proc WHERE proname LIKE 'jobs\\_%'
"""


@pytest.mark.proof  # its migrations take as long as those of a test database
@pytest.mark.django_db
def test_no_table_sequence_view_or_function_is_left() -> None:
    """`migrate jobs zero`, in a transaction that is rolled back."""
    call_command("migrate", "jobs", "zero", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute(_LEFT)
        assert cursor.fetchall() == []
