"""jobs/owners/tokens.py: a secret is shown once, opens its owner only, and stops when revoked."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from jobs.core import barrier, sql
from jobs.core.errors import AccessDenied, OptionError
from jobs.core.sql import now
from jobs.models import ApiToken, AuditEntry, Membership, Owner, Role
from jobs.owners.tokens import make_token, revoke_token, use_token


@pytest.fixture(autouse=True)
def _lowered(db: None) -> None:
    """Each scene begins without a barrier."""
    barrier.lower()


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


def test_nobody_gives_a_token_more_than_they_have(acme: Owner, stranger: Owner) -> None:
    """An admin of one owner makes tokens for that owner; a token cannot make a stronger one."""
    ada = User.objects.create_user("ada")
    Membership.objects.create(owner=acme, user=ada, role=Role.ADMIN)
    made = make_token("deploys", scopes=["read", "admin"], owner=acme, actor=ada)
    for owner in (stranger, None):
        with pytest.raises(AccessDenied):
            make_token("more", scopes=["read"], owner=owner, actor=ada)
    with pytest.raises(AccessDenied):
        make_token("more", scopes=["operate"], owner=acme, actor=made.token)
    foreign, _ = make_token("theirs", scopes=["read"], owner=stranger)
    with pytest.raises(AccessDenied):
        revoke_token(foreign, actor=ada)


def test_both_verbs_are_audited(acme: Owner) -> None:
    """With the actor, who may be a token itself."""
    root, _ = make_token("root", scopes=["admin", "read"])
    made, _ = make_token("deploys", scopes=["read"], owner=acme, actor=root)
    revoke_token(made, actor=root, reason="lost")
    entries = AuditEntry.objects.filter(owner=acme).order_by("id")
    assert [(entry.action, entry.token_id) for entry in entries] == [
        ("create token", root.pk),
        ("revoke token", root.pk),
    ]
    assert entries[0].actor_name == f"token root ({root.prefix}…)"


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("name", {"name": " "}),
        ("name", {"name": "x" * 101}),
        ("scopes", {"scopes": []}),
        ("scopes", {"scopes": ["root"]}),
        ("scopes", {"scopes": "read"}),
    ],
)
def test_a_bad_option_is_refused_by_name(acme: Owner, field: str, given: dict) -> None:
    """Nothing is stored."""
    options = {"name": "deploys", "scopes": ["read"], **given}
    with pytest.raises(OptionError, match=f"option {field}"):
        make_token(options.pop("name"), owner=acme, **options)
    assert not ApiToken.objects.exists()
