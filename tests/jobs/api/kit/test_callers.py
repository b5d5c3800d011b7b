"""jobs/api/kit/callers.py: sessions of the admin call, too, with their roles and permissions."""

from django.db import connection

from jobs.models import Owner, Role
from tests.jobs.api.conftest import ADD, ROOT, Caller, logged_in, post, problem


def test_a_change_by_a_session_needs_the_csrf_token(acme: Owner) -> None:
    """Another site could send the cookie, but not the token."""
    client = logged_in("view_run", "add_submission", checks=True, acme=Role.OPERATOR)
    problem(post(client, "/runs", ADD), 403, "csrf_failed")
    client.get(f"{ROOT}/docs")
    token = client.cookies["csrftoken"]
    assert post(client, "/runs", ADD, **{"X-CSRFToken": token.value}).status_code == 202
    assert client.get(f"{ROOT}/runs").status_code == 200


def test_a_connection_that_was_lost_is_made_anew(
    caller: Caller, committed: None, acme: Owner
) -> None:
    """Between two requests PostgreSQL may restart: the next one is answered all the same."""
    client = caller(acme)
    assert client.get(f"{ROOT}/runs").status_code == 200
    lost = connection.connection.info.backend_pid
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [lost])
    other.close()
    assert client.get(f"{ROOT}/runs").status_code == 200
    assert connection.connection.info.backend_pid != lost
