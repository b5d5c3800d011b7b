"""jobs/pages/audit.py: who did what, filtered by the address, of one's own owners only."""

from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from jobs.models import AuditEntry, Owner
from jobs.owners.limits import pause_owner, resume_owner

AUDIT = reverse("jobs:audit")


def test_the_audit_is_newest_first_with_its_reasons(
    as_root: Client, root: User, acme: Owner, stranger: Owner
) -> None:
    """An entry leads to its object; one that is no model of ours has no link that fails."""
    pause_owner(acme, reason="stocktaking <now>", actor=root)
    pause_owner(stranger, reason="their secret")
    resume_owner(acme, actor=root)
    AuditEntry.objects.create(action="create", object_type="moon", object_id="1")
    page = as_root.get(AUDIT)
    entries = page.context["entries"]
    found = [f"{entry['owner']} {entry['row'].action}" for entry in entries]
    assert found[1:] == ["acme resume", "stranger pause", "acme pause"]
    text = page.content.decode()
    assert "stocktaking &lt;now&gt;" in text and "root" in text and "code" in text
    urls = [entry["url"] for entry in entries]
    assert urls[0] is None and all(as_root.get(url).status_code == 200 for url in urls[1:])
