"""jobs/admin/owners/audit.py: what was done is found by its action."""

import pytest
from django.test import Client
from django.urls import reverse

from jobs.models import AuditEntry, Owner


@pytest.mark.django_db
def test_entries_are_found_by_their_action(as_root: Client, acme: Owner) -> None:
    """And no others."""
    AuditEntry.write("approve window", on=acme)
    AuditEntry.write("pause", on=acme)
    page = as_root.get(reverse("admin:jobs_auditentry_changelist"), {"action": "approve window"})
    [entry] = page.context["cl"].result_list
    assert entry.action == "approve window"
