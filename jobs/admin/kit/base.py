"""What the pages of all models share: rows of one's own owners, quick counts, audit of edits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import FieldDoesNotExist
from django.db import models
from django.http import HttpRequest, QueryDict
from django.template.response import TemplateResponse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.admin.kit import html
from jobs.core.counting import EstimatingPaginator, RoundCount
from jobs.models import AuditEntry, MailSubscription, Owner, Run, Scope
from jobs.models.access import access_of
from jobs.pages.kit import rows as pages


class PageChangeList(ChangeList):
    """A list that loads what its columns need in a few queries for the whole page."""

    model_admin: OwnedAdmin

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return super().get_queryset(request, *args, **kwargs).defer(*self.model_admin.list_defer)

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        self.result_list = list(self.result_list)
        self._count_last_page()
        if not (self.query or self.has_active_filters):
            # Django offers "Show all" where the two counts differ.
            self.full_result_count = self.result_count
        self.model_admin.complete(self.result_list, request)

    def _count_last_page(self) -> None:
        """Replace an estimated count by the exact one when the last row is on this page."""
        if not isinstance(self.result_count, RoundCount):
            return
        before, shown = (self.page_num - 1) * self.list_per_page, len(self.result_list)
        if self.show_all or shown >= self.list_per_page:
            return
        if before and not shown:
            # The last row is on an earlier page, so there are at most `before` rows.
            # With one row more, Django shows the page that was requested.
            count: int = RoundCount(before + 1, _("at most %s") % f"{before:,}")
        else:
            count = before + shown
        self.paginator.__dict__.pop("num_pages", None)
        self.paginator.count = self.result_count = count
        self.multi_page = count > self.list_per_page
        self.can_show_all = count <= self.list_max_show_all


class OwnedAdmin(admin.ModelAdmin):
    """The page of a model whose rows belong to owners."""

    owner_path: ClassVar[str | None] = "owner"
    """Lookup from a row to its owner; None for rows without an owner."""

    list_defer: ClassVar[tuple[str, ...]] = ()
    """Columns of the table that the list does not load."""

    completes_object: ClassVar[bool] = False
    """True: the page of one row needs what `complete` attaches."""

    paginator = EstimatingPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 200
    sortable_by: ClassVar[tuple[str, ...]] = ()
    empty_value_display = "–"

    class Media:
        css = {"all": ("jobs/admin.css",)}

    def complete(self, rows: Sequence[Any], request: HttpRequest) -> None:
        """Attach to rows what their columns show, in a few queries for all of them."""

    def page(
        self, request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200
    ) -> TemplateResponse:
        """Return a page of our own beside the model's stock pages."""
        request.current_app = self.admin_site.name
        shared = {**self.admin_site.each_context(request), "opts": self.opts, "media": self.media}
        return TemplateResponse(request, template, {**shared, **context}, status=status)

    def view_on_site(self, row: models.Model) -> str | None:
        """Return the address of the row's page outside the admin, for the button there."""
        return pages.address_of(row)

    owner_link = html.column_of(lazy("owner"), "owner", html.link)
    task_name = html.column_of(lazy("task"), "task", html.task)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        title = capfirst(self.opts.verbose_name_plural)
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return PageChangeList

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        rows = super().get_queryset(request)
        if self.owner_path is None:
            return rows
        return access_of(request.user).narrowed(rows, path=self.owner_path)

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        row = super().get_object(request, object_id, from_field)
        if row is not None and self.completes_object:
            self.complete([row], request)
        return row

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Allow the declared filters only: another lookup may scan a table or reveal secrets."""
        declared = {
            getattr(item, "parameter_name", None) or f"{item}__exact" for item in self.list_filter
        }
        return lookup in declared

    def to_field_allowed(self, request: HttpRequest, to_field: str) -> bool:
        """Refuse an autocomplete of a reverse relation: Django's view fails with status 500."""
        return super().to_field_allowed(request, to_field) and not _is_reverse(request.GET)

    def owner_of(self, row: Any) -> int | None:
        """Return the key of a row's owner."""
        return row.pk if isinstance(row, Owner) else row.owner_id

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        may_add = super().has_add_permission(request, *args)
        return may_add and access_of(request.user).has_somewhere(Scope.ADMIN)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and self._may_edit(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and self._may_edit(request, obj)

    def _may_edit(self, request: HttpRequest, obj: Any) -> bool:
        if obj is None or self.owner_path is None:
            return access_of(request.user).has_somewhere(Scope.ADMIN)
        return access_of(request.user).has(Scope.ADMIN, self.owner_of(obj))

    def get_field_queryset(self, db: str | None, db_field: Any, request: HttpRequest) -> Any:
        """Offer only owners for whom the person may edit, and rows of these owners."""
        to = db_field.remote_field.model
        if to is not Owner and not hasattr(to, "owner"):
            return super().get_field_queryset(db, db_field, request)
        rows, path = to._default_manager.all(), "pk" if to is Owner else "owner"
        return access_of(request.user).narrowed(rows, path=path, scope=Scope.ADMIN)

    def audit(self, action: str, row: Any, request: HttpRequest, **details: Any) -> None:
        """Write an edit of a row to the audit."""
        AuditEntry.write(action, on=row, actor=request.user, **details)

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        self.audit("create", obj, request)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        self.audit("change", obj, request, changes=message)
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        for row in queryset:
            self.audit("delete", row, request, name=str(row))
        return super().log_deletions(request, queryset)

    def get_deleted_objects(self, objs: Iterable[Any], request: HttpRequest) -> Any:
        """Refuse to delete rows with runs: no constraint protects the runs' references."""
        rows = list(objs)
        to_delete, counts, missing, protected = super().get_deleted_objects(rows, request)
        field = self.opts.model_name
        if field in {"owner", "job", "target"}:
            protected = list(protected) + [
                _("the runs of %(row)s") % {"row": row}
                for row in rows
                if Run.objects.filter(**{field: row}).exists()
            ]
        # Mail subscriptions are deleted with their owner or job; their own pages are read-only.
        missing = set(missing) - {MailSubscription._meta.verbose_name}
        # The protected rows are the whole answer: other permissions would not help.
        return to_delete, counts, set() if protected else missing, protected


class RecordAdmin(OwnedAdmin):
    """Read-only pages of rows that only the system writes."""

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields or ()

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def with_fields(fieldsets: Any, replaced: Mapping[str, str | None]) -> list[tuple[Any, Any]]:
    """Return fieldsets with some fields replaced, or removed by None; without empty fieldsets."""
    made = []
    for title, options in fieldsets:
        fields = [replaced.get(name, name) for name in options["fields"]]
        if kept := [name for name in fields if name is not None]:
            made.append((title, {**options, "fields": kept}))
    return made


def _is_reverse(query: QueryDict) -> bool:
    """Say whether the parameters of an autocomplete name a reverse relation."""
    try:
        model = apps.get_model(query.get("app_label", ""), query.get("model_name", ""))
        field = model._meta.get_field(query.get("field_name", ""))
    except (LookupError, FieldDoesNotExist):
        return False
    return isinstance(field, models.ForeignObjectRel)
