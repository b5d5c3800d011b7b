"""Saved views: filters of the list of runs that a user has named."""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from jobs.models.fields import one_line

VIEW_NAME_LIMIT: Final = 60
VIEW_QUERY_LIMIT: Final = 4_000


class SavedView(models.Model):
    """A filter of runs under a name. Only its user sees it.

    It grants nothing: a view is opened with the access that its user has at that time. It belongs
    to no owner, so requests behind the barrier cannot read the table.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    name = models.CharField(_("name"), max_length=VIEW_NAME_LIMIT, validators=[one_line])
    # The query of the list's address, such as "state=failed&owner=acme".
    query = models.CharField(max_length=VIEW_QUERY_LIMIT)

    class Meta:
        default_permissions = ()
        ordering = ("name",)
        constraints = [
            models.UniqueConstraint(name="saved_view_of_user", fields=("user", "name")),
        ]

    def __str__(self) -> str:
        return self.name
