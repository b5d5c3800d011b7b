"""manage.py fleet token: made and printed once, listed without secrets, revoked."""

import json

import pytest
from django.core.management import CommandError, call_command

from jobs.models import ApiToken, AuditEntry, Owner
from jobs.owners.tokens import use_token
from tests.jobs.management.conftest import Printed

pytestmark = pytest.mark.django_db


def test_a_token_is_printed_once(printed: Printed) -> None:
    """The list has its prefix only; a revoked one opens nothing."""
    Owner.objects.create(slug="acme")
    made = "fleet token create robot --owner acme --scopes read submit --days 7"
    secret = printed(made).strip()
    token = ApiToken.objects.get()
    assert token.scopes == ["read", "submit"] and token.expires_at is not None
    listed = printed("fleet token list")
    assert token.prefix in listed and secret not in listed
    assert printed("fleet token revoke", token.prefix, "--reason", "lost").endswith("is revoked.\n")
    assert printed("fleet token revoke", token.prefix).endswith("was revoked before.\n")
    assert use_token(secret) is None
    assert AuditEntry.objects.get(action="revoke token").reason == "lost"


def test_a_program_reads_json(printed: Printed) -> None:
    """A token for all owners has no owner."""
    made = json.loads(printed("fleet token create robot --all-owners --scopes admin --json"))
    assert made["owner"] is None and made["token"].startswith(made["prefix"])
    [listed] = json.loads(printed("fleet token list --json"))["tokens"]
    assert "token" not in listed and listed["prefix"] == made["prefix"]


@pytest.mark.parametrize(
    "words",
    [
        "create robot --owner nobody --scopes read",
        "create robot --all-owners --scopes root",
        "create robot --scopes read",
        "revoke fs_nothing",
    ],
)
def test_what_is_wrong_is_said(words: str) -> None:
    """Nothing is stored."""
    with pytest.raises(CommandError):
        call_command("fleet", "token", *words.split())
    assert not ApiToken.objects.exists()
