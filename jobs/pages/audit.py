"""The audit: who did what, when, to which object, and why."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponse

from jobs.actions.filters.owners import AuditFilter
from jobs.core.language import in_language
from jobs.models import AuditEntry
from jobs.owners.audited import action_in_words, slugs_of
from jobs.pages.kit.lists import FilterForm, newest_first
from jobs.pages.kit.rows import row_address
from jobs.pages.kit.visit import Visit, page


@page("audit", permission="jobs.view_auditentry")
def audit(visit: Visit) -> HttpResponse:
    """Show what people, programs and code did, newest first."""
    form = FilterForm(visit, AuditFilter)
    found = newest_first(visit, form.narrow(visit.rows(AuditEntry.objects.all())), of="audit")
    slugs = slugs_of(found.rows, access=visit.access)
    shown = [_shown(visit, entry, slugs.get(entry.owner_id or 0, "")) for entry in found.rows]
    return visit.show(
        "jobs/pages/audit.html",
        form=form,
        list=found,
        entries=shown,
        admin_url=visit.admin_address("auditentry_changelist"),
    )


def _shown(visit: Visit, entry: AuditEntry, slug: str) -> dict[str, Any]:
    details = json.dumps(entry.details, indent=2, ensure_ascii=False) if entry.details else ""
    return {
        "row": entry,
        "action": in_language(action_in_words(entry.action)),
        "owner": slug,
        "owner_url": row_address(visit, "owner", entry.owner_id, slug=slug) if slug else None,
        "url": row_address(visit, entry.object_type, entry.object_id, slug=slug),
        "details": details,
    }
