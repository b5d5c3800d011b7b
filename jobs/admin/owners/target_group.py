"""Groups of targets, which are chosen one by one or pasted as a list of names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from django import forms
from django.contrib import admin
from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.admin.calendars.links import calendars_by, links_to
from jobs.admin.kit import html
from jobs.admin.kit.base import OwnedAdmin
from jobs.admin.kit.filters import OwnerFilter
from jobs.admin.kit.stale_form import StaleCheckForm, digest
from jobs.calendars import changes
from jobs.models import Scope, Target, TargetGroup
from jobs.models.access import access_of
from jobs.models.fields import no_nul
from jobs.runs.reads.search import search_beginnings

NAMED: Final = 10
"""Names that an error lists."""
MOST_NAMES: Final = 50_000


class TargetGroupForm(StaleCheckForm):
    """A group and its targets, chosen or named."""

    user: ClassVar[Any] = None
    """Set by the admin: the person whose targets are offered."""

    names = forms.CharField(
        label=lazy("Also by name"),
        required=False,
        strip=False,
        validators=[no_nul],
        help_text=lazy("One name a line. These targets are added to the group."),
        widget=forms.Textarea(attrs={"rows": 6, "cols": 60, "spellcheck": "false"}),
    )

    class Meta:
        model = TargetGroup
        fields = ("owner", "name", "targets")

    def mark(self) -> str:
        group = self.instance
        return digest([group.name, *sorted(group.targets.values_list("pk", flat=True))])

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        owner = cleaned.get("owner") or (self.instance.owner if self.instance.pk else None)
        if owner is None or not {"targets", "names"} <= cleaned.keys():
            return cleaned
        of_owner = Target.objects.filter(owner=owner)
        mine = access_of(self.user).narrowed(of_owner, scope=Scope.ADMIN)
        chosen = cleaned["targets"]
        wanted = {line.strip() for line in cleaned["names"].splitlines()} - {""}
        if others := [one for one in chosen if one.owner_id != owner.pk]:
            names = ", ".join(str(one) for one in others[:NAMED])
            problem = _("Not owned by %(owner)s: %(names)s.")
            self.add_error("targets", problem % {"owner": owner, "names": names})
        if len(wanted) > MOST_NAMES:
            self.add_error("names", _("At most %s names at once.") % f"{MOST_NAMES:,}")
            return cleaned
        named = mine.filter(name__in=wanted)
        if unknown := sorted(wanted - set(named.values_list("name", flat=True))):
            more = _(" and %d more") % (len(unknown) - NAMED) if len(unknown) > NAMED else ""
            names = ", ".join(unknown[:NAMED]) + more
            problem = _("%(owner)s has no targets of these names: %(names)s.")
            self.add_error("names", problem % {"owner": owner, "names": names})
        if not self.errors:
            cleaned["targets"] = chosen | named
        return cleaned


@admin.register(TargetGroup)
class TargetGroupAdmin(OwnedAdmin):
    form = TargetGroupForm
    completes_object = True
    list_display = ("name", "owner_link", "count", "applying")
    list_select_related = ("owner",)
    list_filter = (OwnerFilter,)
    search_fields = ("name",)
    search_help_text = lazy("The beginning of the name.")
    ordering = ("owner_id", "name")
    autocomplete_fields = ("owner", "targets")
    fields = ("owner", "name", "targets", "names", "applying", "seen")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["applying", "owner"] if obj else ["applying"]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return [name for name in self.fields or () if name != "applying"]
        if not self.has_change_permission(request, obj):
            return ["owner", "name", "targets", "applying"]
        return self.fields

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, *args, **kwargs)
        form.user = request.user
        return form

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[Any, bool]:
        return search_beginnings(queryset, search_term, exact="name"), False

    def complete(self, rows: Sequence[Any], request: HttpRequest) -> None:
        keys = [row.pk for row in rows]
        through = TargetGroup.targets.through.objects.filter(targetgroup__in=keys).order_by()
        counts = dict(through.values_list("targetgroup").annotate(count=Count("*")))
        applying = calendars_by("group", keys, request.user)
        for row in rows:
            row.page_count = counts.get(row.pk, 0)
            row.page_calendars = applying.get(row.pk, [])

    count = html.column_of(lazy("targets"), "page_count", "{:,}".format)
    applying = html.column_of(lazy("calendars"), "page_calendars", links_to)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        with changes.changing_group(form.instance):
            super().save_related(request, form, formsets, change)

    def delete_model(self, request: HttpRequest, obj: TargetGroup) -> None:
        with changes.changing_group(obj) as group:
            group.delete()

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        with transaction.atomic():
            for group in queryset:
                self.delete_model(request, group)
