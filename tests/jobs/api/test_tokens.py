"""jobs/api/tokens.py: a token is made, shown once, listed without its secret, and revoked."""

from jobs.models import ApiToken, Owner, Role
from tests.jobs.api.conftest import ROOT, Caller, client_of, logged_in, post, problem
from tests.jobs.api.test_wrong_fields import PROGRAM


def test_a_secret_is_shown_once(caller: Caller, acme: Owner) -> None:
    """No other answer has it, nor the audit; no cache keeps it."""
    client = caller(acme)
    made = post(client, "/tokens", PROGRAM)
    assert made.status_code == 201, made.content
    secret, prefix = made.json()["token"], made.json()["prefix"]
    assert made["Cache-Control"] == "no-store"
    assert secret.startswith(prefix) and len(secret) >= len(prefix) + 43
    assert made["Location"] == f"{ROOT}/tokens/{prefix}"
    later = [client.get(f"{ROOT}{path}") for path in (f"/tokens/{prefix}", "/tokens", "/audit")]
    assert [each.status_code for each in later] == [200, 200, 200]
    assert not [each for each in later if secret.encode() in each.content]
    assert "token" not in later[0].json()
    assert client_of(secret).get(f"{ROOT}/runs").status_code == 200
    assert client.get(f"{ROOT}/tokens/{prefix}").json()["last_used_at"] is not None


def test_no_caller_gives_a_token_more_than_it_has(caller: Caller, acme: Owner) -> None:
    """Neither a scope, nor another owner, nor the whole installation."""
    client = caller(acme, "read", "admin")
    before = ApiToken.objects.count()
    wider = post(client, "/tokens", {**PROGRAM, "scopes": ["read", "operate"]})
    assert "'operate' for acme" in problem(wider, 403, "forbidden")["detail"]
    assert ApiToken.objects.count() == before
    made = post(client, "/tokens", PROGRAM)
    assert made.status_code == 201 and made.json()["owner"] == "acme"


def test_a_session_makes_tokens_for_its_role(acme: Owner) -> None:
    """An admin of the owner; no operator, whatever Django's permissions are."""
    permissions = ("view_apitoken", "add_apitoken", "change_apitoken")
    operator = logged_in(*permissions, name="ben", acme=Role.OPERATOR)
    problem(post(operator, "/tokens", PROGRAM), 403, "forbidden")
    assert not ApiToken.objects.exists()
    admin = logged_in(*permissions, acme=Role.ADMIN)
    assert post(admin, "/tokens", PROGRAM).status_code == 201
    maker = ApiToken.objects.select_related("created_by").get().created_by
    assert maker is not None and maker.username == "ada"
