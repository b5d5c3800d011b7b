"""The pages of django-celery-results and django-celery-beat: for superusers only.

These tables hold results, arguments and schedules of all owners, and no row names its owner. So
Django's permission to view such a table would show the rows of all owners.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest

from jobs.models.access import access_of

APPS: Final = ("django_celery_results", "django_celery_beat")


class SuperusersOnly(admin.ModelAdmin):
    """Pages that only superusers see. Mix in before other admin classes."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return access_of(request.user).sees_all and super().has_module_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access_of(request.user).sees_all and super().has_view_permission(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return access_of(request.user).sees_all and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access_of(request.user).sees_all and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access_of(request.user).sees_all and super().has_delete_permission(request, obj)


def restrict_to_superusers(site: admin.AdminSite) -> None:
    """Restrict the pages of these apps to superusers; repeating the call changes nothing."""
    for name in filter(apps.is_installed, APPS):
        # Import it now: an app that registers its pages after this call would not be restricted.
        import_module(f"{name}.admin")
        for model in apps.get_app_config(name).get_models():
            if not site.is_registered(model):
                continue
            page = type(site.get_model_admin(model))
            if not issubclass(page, SuperusersOnly):
                site.unregister(model)
                site.register(model, type(page.__name__, (SuperusersOnly, page), {}))


restrict_to_superusers(admin.site)
