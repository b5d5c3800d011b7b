"""API tokens: created, shown once, and revoked."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.actions.tokens import TOKENS
from jobs.admin.kit import html
from jobs.admin.kit.actions import ActionAdmin
from jobs.core.sql import now
from jobs.models import ApiToken, Scope, access
from jobs.owners.tokens import make_token
from jobs.pages.kit.widgets import date_and_time


class TokenForm(forms.ModelForm):
    """A new token."""

    scopes = forms.MultipleChoiceField(
        label=lazy("Scopes"), choices=Scope.choices, widget=forms.CheckboxSelectMultiple
    )
    expires_at = forms.SplitDateTimeField(
        label=lazy("Expires at"),
        required=False,
        help_text=lazy("Empty: it does not expire."),
        widget=date_and_time(),
    )

    user: Any

    class Meta:
        model = ApiToken
        fields = ("owner", "name", "scopes", "expires_at")

    def clean_owner(self) -> Any:
        owner = self.cleaned_data["owner"]
        if owner is None and not access.has_scope(self.user, None, Scope.ADMIN):
            raise forms.ValidationError(_("Choose an owner: only superusers create one for all."))
        return owner

    def clean_expires_at(self) -> Any:
        expires_at = self.cleaned_data["expires_at"]
        if expires_at is not None and expires_at <= now():
            raise forms.ValidationError(_("This time is in the past."))
        return expires_at


@admin.register(ApiToken)
class TokenAdmin(ActionAdmin):
    noun = TOKENS
    form = TokenForm
    list_display = ("name", "prefix", "owner_link", "scope_list", "state", "last_used_at")
    list_select_related = ("owner",)
    search_fields = ("prefix",)
    search_help_text = lazy("The beginning of a prefix.")
    fields = ("owner", "name", "scopes", "expires_at")
    autocomplete_fields = ("owner",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return self.fields
        return (
            *("owner", "name", "prefix", "scope_list", "state"),
            *("created_by", "created_at", "expires_at", "last_used_at"),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return () if obj is None else self.get_fields(request, obj)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.user = request.user
        return form

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Say no: what a token allows does not change; another one is created."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Say no: the audit names tokens."""
        return False

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Show the form with one button: each would lead to the page with the secret."""
        buttons = {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().add_view(request, form_url, {**(extra_context or {}), **buttons})

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        given = form.cleaned_data
        user: Any = request.user
        made = make_token(
            given["name"],
            scopes=given["scopes"],
            owner=given["owner"],
            expires_at=given["expires_at"],
            actor=user,
        )
        obj.__dict__.update(made.token.__dict__)
        request.fairshift_secret = made.secret  # type: ignore[attr-defined]

    def audit(self, action: str, row: Any, request: HttpRequest, **details: Any) -> None:
        """Do nothing: the verbs of tokens write the audit."""

    def response_add(self, request: HttpRequest, obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Show the secret: the only page that ever does."""
        context = {
            "token": obj,
            "secret": request.fairshift_secret,  # type: ignore[attr-defined]
            "title": _("API token"),
        }
        response: HttpResponse = self.page(request, "admin/jobs/apitoken/made.html", context)
        response["Cache-Control"] = "no-store"
        return response

    @html.column(lazy("scopes"))
    def scope_list(self, token: ApiToken) -> str:
        return ", ".join(token.scopes)

    @html.column(lazy("state"))
    def state(self, token: ApiToken) -> str:
        if token.revoked_at is not None:
            return html.badge(_("revoked"), "cancelled")
        if token.expires_at is not None and token.expires_at <= now():
            return html.badge(_("expired"), "expired")
        return html.badge(_("usable"), "succeeded")
