"""jobs/owners/tokens.py: a secret is shown once, opens its owner only, and stops when revoked."""

from datetime import timedelta

import pytest

from jobs.core import barrier, sql
from jobs.core.sql import now
from jobs.models import ApiToken, Owner
from jobs.owners.tokens import make_token, revoke_token, use_token

pytestmark = pytest.mark.usefixtures("lowered")


def test_only_a_hash_is_stored(acme: Owner) -> None:
    """The row has the prefix, by which people recognise a token, and nothing that opens a door."""
    token, secret = make_token("deploys", scopes=["read", "submit"], owner=acme)
    [row] = sql.query("SELECT * FROM jobs_apitoken")
    assert secret.startswith(f"{token.prefix}_")
    # 43 characters of 6 bits hold the 256 random ones.
    assert len(secret.removeprefix(f"{token.prefix}_")) == 43
    assert secret not in str(row) and len(row["digest"]) == 32


def test_a_token_is_found_by_its_secret_alone(acme: Owner) -> None:
    """A wrong, changed or oversized secret finds nothing, and is no error."""
    token, secret = make_token("deploys", scopes=["read"], owner=acme)
    found = use_token(secret)
    barrier.lower()
    assert found == token and found.scopes == ["read"] and found.owner_id == acme.pk
    for wrong in ("", "fs_", secret[:-1], secret + "x", secret.upper(), "fs_" + "é", "fs_" * 999):
        assert use_token(wrong) is None


def test_a_revoked_or_expired_token_opens_nothing_from_the_next_request_on(acme: Owner) -> None:
    """The look-up asks the row each time: no process remembers an answer."""
    revoked, secret = make_token("old", scopes=["read"], owner=acme)
    assert use_token(secret)
    barrier.lower()
    assert revoke_token(revoked, reason="lost")
    assert not revoke_token(revoked)
    assert use_token(secret) is None
    expiring, secret = make_token("new", scopes=["read"], owner=acme)
    ApiToken.objects.filter(pk=expiring.pk).update(expires_at=now() - timedelta(seconds=1))
    assert use_token(secret) is None


def test_a_use_is_noted_at_most_once_a_minute(acme: Owner) -> None:
    """A write with each request would cost more than the request."""
    token, secret = make_token("deploys", scopes=["read"], owner=acme)
    seen = []
    for _ in range(2):
        use_token(secret)
        barrier.lower()
        token.refresh_from_db()
        seen.append(token.last_used_at)
    assert seen[0] is not None and seen[0] == seen[1]
    ApiToken.objects.update(last_used_at=now() - timedelta(seconds=61))
    use_token(secret)
    barrier.lower()
    token.refresh_from_db()
    assert token.last_used_at > now() - timedelta(seconds=30)
