"""jobs/api/kit/lean.py: requests with a token pass no middleware of pages."""

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
