"""jobs/pages/audit.py: who did what, filtered by the address, of one's own owners only."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from jobs.models import AuditEntry, Owner
from jobs.owners.limits import pause_owner, resume_owner

AUDIT = reverse("jobs:audit")


def shown(client: Client, **query: Any) -> list[str]:
    """Return the entries on a page as `owner action`, newest first."""
    page = client.get(AUDIT, query)
    assert page.status_code == 200
    return [f"{entry['owner']} {entry['row'].action}" for entry in page.context["entries"]]


@pytest.fixture
def done(acme: Owner, stranger: Owner, root: User) -> None:
    """What root and code did to two owners."""
    pause_owner(acme, reason="stocktaking <now>", actor=root)
    pause_owner(stranger, reason="their secret")
    resume_owner(acme, actor=root)


def test_the_audit_is_newest_first_with_its_reasons(as_root: Client, done: None) -> None:
    assert shown(as_root) == ["acme resume", "stranger pause", "acme pause"]
    text = as_root.get(AUDIT).content.decode()
    assert "stocktaking &lt;now&gt;" in text and "root" in text and "code" in text


def test_an_entry_leads_to_its_object(as_root: Client, done: None, acme: Owner) -> None:
    """An object that is no model of ours, or is gone, has no link that fails."""
    AuditEntry.objects.create(action="create", object_type="moon", object_id="1")
    page = as_root.get(AUDIT)
    urls = [entry["url"] for entry in page.context["entries"]]
    assert urls[0] is None and all(as_root.get(url).status_code == 200 for url in urls[1:])
