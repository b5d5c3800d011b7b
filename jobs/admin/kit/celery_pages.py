"""The pages of django-celery-results and -beat: for superusers, as their rows belong to no owner.

Results, arguments and schedules of every owner stand in these tables, and nothing in a row says
whose it is: a permission of Django's on them would show all of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from django.apps import apps
from django.contrib import admin
from django.http import HttpRequest

from jobs.models import access

APPS: Final = ("django_celery_results", "django_celery_beat")


class SuperusersOnly(admin.ModelAdmin):
    """Pages that nobody but superusers sees. Mix in before other admin classes."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return access.sees_all(request.user) and super().has_module_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access.sees_all(request.user) and super().has_view_permission(request, obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return access.sees_all(request.user) and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access.sees_all(request.user) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return access.sees_all(request.user) and super().has_delete_permission(request, obj)


def close_to_others(site: admin.AdminSite) -> None:
    """Let only superusers see what these apps have registered; harmless when repeated."""
    for name in filter(apps.is_installed, APPS):
        # Before its turn: an app that registers its pages after ours would open them again.
        import_module(f"{name}.admin")
        for model in apps.get_app_config(name).get_models():
            if not site.is_registered(model):
                continue
            kind = type(site.get_model_admin(model))
            if not issubclass(kind, SuperusersOnly):
                site.unregister(model)
                site.register(model, type(kind.__name__, (SuperusersOnly, kind), {}))


close_to_others(admin.site)
