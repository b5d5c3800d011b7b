"""The audit: who did what, when, to which object, and why."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.http import HttpResponse
from django.utils.translation import gettext_lazy as _

from jobs.core.language import in_language, lazy_in_language
from jobs.core.sql import now
from jobs.models import AuditEntry
from jobs.models.fields import OWNER_LIMIT, no_nul
from jobs.owners.audited import ACTIONS, AuditFilter, action_in_words, audited, slugs_of
from jobs.pages.kit.lists import FilterForm, newest_first
from jobs.pages.kit.nav import admin_list
from jobs.pages.kit.rows import row_address
from jobs.pages.kit.visit import Visit, page
from jobs.runs.reads.choices import AGES


class AuditForm(FilterForm):
    """The filter of the audit. Links to what was done to one object set its last two fields."""

    owner = forms.CharField(label=_("Owner"), max_length=OWNER_LIMIT, validators=[no_nul])
    actor = forms.CharField(
        label=_("Who"),
        max_length=150,
        validators=[no_nul],
        widget=forms.TextInput(attrs={"placeholder": _("the whole name")}),
    )
    action = forms.ChoiceField(
        label=_("What"),
        choices=[
            ("", _("anything")),
            *((str(word), lazy_in_language(word)) for word in sorted(ACTIONS)),
        ],
    )
    age = forms.ChoiceField(
        label=_("When"),
        choices=[("", _("at any time")), *((key, label) for key, (_span, label) in AGES.items())],
    )
    object_type = forms.CharField(
        label=_("Kind of object"), max_length=64, validators=[no_nul], widget=forms.TextInput()
    )
    object_id = forms.CharField(label=_("Its id"), max_length=64, validators=[no_nul])

    def wanted(self) -> AuditFilter:
        """Return the filter of a valid form."""
        given = {name: value for name, value in self.cleaned_data.items() if value}
        age = given.pop("age", None)
        return AuditFilter(**given, after=now() - AGES[age][0] if age else None)


@page("audit", permission="jobs.view_auditentry")
def audit(visit: Visit) -> HttpResponse:
    """Show what people, programs and code did, newest first."""
    form = AuditForm(visit)
    is_valid = form.is_valid()
    wanted = form.wanted() if is_valid else AuditFilter()
    rows = audited(wanted, access=visit.access)
    found = newest_first(visit, rows if is_valid else rows.none(), of="audit")
    slugs = slugs_of(found.rows, access=visit.access)
    shown = [_shown(visit, entry, slugs.get(entry.owner_id or 0, "")) for entry in found.rows]
    return visit.show(
        "jobs/pages/audit.html",
        form=form,
        list=found,
        entries=shown,
        admin_url=admin_list(visit.access.actor, "auditentry"),
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
