"""jobs/api/kit/lean.py: requests with a token pass no middleware of pages."""

import pytest

from jobs.models import Owner
from tests.jobs.api.conftest import ROOT, Caller


def test_an_answer_to_a_token_has_no_cookie_and_the_strictest_policy(
    caller: Caller, acme: Owner
) -> None:
    """A browser that is shown it loads and frames nothing."""
    answer = caller(acme).get(f"{ROOT}/runs", headers={"Cookie": "sessionid=x; csrftoken=y"})
    assert answer.status_code == 200 and not answer.cookies
    assert answer["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert (answer["X-Frame-Options"], answer["X-Content-Type-Options"]) == ("DENY", "nosniff")
    assert not hasattr(answer.wsgi_request, "session") and not hasattr(answer.wsgi_request, "user")


@pytest.mark.parametrize("path", ["/admin/", f"{ROOT}/docs", "/nothing"])
def test_pages_are_reached_as_ever(caller: Caller, acme: Owner, *, path: str) -> None:
    """A token opens no page of the admin, and pages keep their middleware."""
    answer = caller(acme).get(path)
    assert answer.status_code in {302, 404}
    assert hasattr(answer.wsgi_request, "session")
