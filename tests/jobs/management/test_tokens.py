"""manage.py fleet token: made and printed once, listed without secrets, revoked."""

import json

import pytest
from django.core.management import CommandError, call_command

from jobs.models import ApiToken, AuditEntry, Owner
from jobs.owners.tokens import use_token

pytestmark = pytest.mark.django_db


def told(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    call_command("fleet", "token", *options)
    return capsys.readouterr().out


def test_a_token_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The list has its prefix only; a revoked one opens nothing."""
    Owner.objects.create(slug="acme")
    made = ("create", "robot", "--owner", "acme", "--scopes", "read", "submit", "--days", "7")
    secret = told(capsys, *made).strip()
    token = ApiToken.objects.get()
    assert token.scopes == ["read", "submit"] and token.expires_at is not None
    assert token.prefix in told(capsys, "list") and secret not in told(capsys, "list")
    assert told(capsys, "revoke", token.prefix, "--reason", "lost").endswith("is revoked.\n")
    assert told(capsys, "revoke", token.prefix).endswith("was revoked before.\n")
    assert use_token(secret) is None
    assert AuditEntry.objects.get(action="revoke token").reason == "lost"


def test_a_program_reads_json(capsys: pytest.CaptureFixture[str]) -> None:
    """A token for all owners has no owner."""
    options = ("create", "robot", "--all-owners", "--scopes", "admin", "--json")
    made = json.loads(told(capsys, *options))
    assert made["owner"] is None and made["token"].startswith(made["prefix"])
    [listed] = json.loads(told(capsys, "list", "--json"))["tokens"]
    assert "token" not in listed and listed["prefix"] == made["prefix"]


@pytest.mark.parametrize(
    "options",
    [
        ("create", "robot", "--owner", "nobody", "--scopes", "read"),
        ("create", "robot", "--all-owners", "--scopes", "root"),
        ("create", "robot", "--scopes", "read"),
        ("revoke", "fs_nothing"),
    ],
)
def test_what_is_wrong_is_said(options: tuple[str, ...]) -> None:
    """Nothing is stored."""
    with pytest.raises(CommandError):
        call_command("fleet", "token", *options)
    assert not ApiToken.objects.exists()
