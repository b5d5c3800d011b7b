"""jobs/admin/owners/audit.py: what was done is found by its action."""

import re
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

import jobs
from jobs.calendars.approvals import _VERBS
from jobs.models import AuditEntry, Owner
from jobs.owners.audited import ACTIONS as KNOWN

ACTIONS = re.compile(r'(?:AuditEntry\.write(?:_all)?\(|_audit(?:_run)?\(|action=)\s*"([a-z ]+)"')
CODE = Path(jobs.__file__).parent


def test_the_filter_offers_every_action_that_the_code_writes() -> None:
    """Each by its name as it is stored."""
    written = {
        action
        for path in CODE.rglob("*.py")
        if path.parent.name not in ("client", "commands")  # argparse has actions, too
        for action in ACTIONS.findall(path.read_text())
    }
    written |= {f"{verb} window" for verb in _VERBS.values()}
    assert {"approve window", "retry failed runs", "move to task"} <= written
    assert written <= set(map(str, KNOWN))


@pytest.mark.django_db
def test_entries_are_found_by_their_action(as_root: Client, acme: Owner) -> None:
    """And no others."""
    AuditEntry.write("approve window", on=acme)
    AuditEntry.write("pause", on=acme)
    page = as_root.get(reverse("admin:jobs_auditentry_changelist"), {"action": "approve window"})
    [entry] = page.context["cl"].result_list
    assert entry.action == "approve window"
