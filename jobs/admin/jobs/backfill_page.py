"""Backfills: cancelled here, begun on the page of a job. Their submissions show the progress."""

from __future__ import annotations

from typing import Final

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from jobs.actions.backfills import BACKFILLS
from jobs.actions.filters.declared import by_owner
from jobs.admin.kit import html
from jobs.admin.kit.actions import ActionAdmin
from jobs.admin.kit.base import RecordAdmin
from jobs.admin.kit.filters import OwnerFilter, linked
from jobs.models import Backfill, BackfillState, Job

LOOKS: Final = {
    BackfillState.MAKING: "running",
    BackfillState.STOPPED: "cancelled",
    BackfillState.MADE: "succeeded",
}
"""The badge of each state is that of a run's state."""


class BackfillOwnerFilter(OwnerFilter):
    by = by_owner("job__owner_id")


@admin.register(Backfill)
class BackfillAdmin(ActionAdmin, RecordAdmin):
    noun = BACKFILLS
    owner_path = "job__owner"
    list_display = (
        "span",
        "life",
        "submitted",
        "job_link",
        "owner_link",
        "submission_link",
        "begun",
    )
    list_display_links = ("span",)
    list_select_related = ("job__owner", "submission")
    list_filter = (BackfillOwnerFilter, linked("job", Job))
    list_defer = ("job__payload",)
    list_per_page = 25
    ordering = ("-id",)
    fields = list_display

    def owner_of(self, row: Backfill) -> int | None:
        return row.job.owner_id

    @html.column(_("range"))
    def span(self, backfill: Backfill) -> str:
        return html.between(backfill.start_at, backfill.end_at)

    @html.column(_("state"))
    def life(self, backfill: Backfill) -> str:
        return html.badge(backfill.state.label, LOOKS[backfill.state])

    @html.column(_("runs made"))
    def submitted(self, backfill: Backfill) -> str:
        return f"{backfill.made:,} / {backfill.count:,}"

    job_link = html.column_of(_("job"), "job", html.link)
    owner_link = html.column_of(_("owner"), "job.owner", html.link)
    submission_link = html.column_of(_("submission"), "submission", html.link)
    begun = html.column_of(_("begun"), "created_at", html.moment)
