"""Targets: what runs act on, with the runs of each."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.admin.calendars.links import calendars_of_target, links_to
from jobs.admin.kit import html
from jobs.admin.kit.base import OwnedAdmin
from jobs.admin.kit.filters import OwnerFilter
from jobs.core.errors import OptionError
from jobs.core.inputs import refuse_labels
from jobs.models import Target
from jobs.runs.reads.search import search_beginnings


class TargetForm(forms.ModelForm):
    """A target; its labels have the limits of those of jobs and runs."""

    def clean_labels(self) -> Any:
        labels = self.cleaned_data["labels"]
        if labels is None:
            return {}
        try:
            refuse_labels(labels)
        except OptionError as error:
            raise forms.ValidationError(error.problem) from None
        return labels


@admin.register(Target)
class TargetAdmin(OwnedAdmin):
    form = TargetForm
    list_display = ("name", "owner_link", "label_marks", "runs", "created")
    list_select_related = ("owner",)
    list_filter = (OwnerFilter,)
    search_fields = ("name",)
    search_help_text = _("The beginning of the name.")
    ordering = ("owner_id", "name")
    autocomplete_fields = ("owner",)
    fields = ("owner", "name", "labels", "in_groups", "applying", "runs", "created")

    def get_fields(self, request: HttpRequest, obj: Target | None = None) -> Any:
        return self.fields if obj else ("owner", "name", "labels")

    def get_readonly_fields(self, request: HttpRequest, obj: Target | None = None) -> list[str]:
        return ["in_groups", "applying", "runs", "created", *(["owner"] if obj else [])]

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        return search_beginnings(queryset, search_term, exact="name"), False

    label_marks = html.column_of(_("labels"), "labels", html.pairs)
    runs = html.runs_of("target")

    @html.column(_("groups"))
    def in_groups(self, target: Target) -> str:
        return links_to(target.groups.order_by("name"))

    @html.column(_("calendars"))
    def applying(self, target: Target) -> str:
        return calendars_of_target(target)

    created = html.column_of(_("created"), "created_at", html.moment)
