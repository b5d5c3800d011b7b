"""Targets: what a run acts on, such as a device or a site."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.fields import no_nul
from jobs.models.owner import Owner


class Target(models.Model):
    """One thing of an owner that runs act on, known by its name."""

    owner = models.ForeignKey(Owner, models.PROTECT, related_name="targets")
    name = models.CharField(_("name"), max_length=200, validators=[no_nul])
    labels = models.JSONField(_("labels"), default=dict, blank=True)
    created_at = models.DateTimeField(_("created at"), db_default=Now(), editable=False)

    class Meta:
        verbose_name = _("target")
        verbose_name_plural = _("targets")
        ordering = ("owner", "name")
        constraints = [
            models.UniqueConstraint(fields=("owner", "name"), name="target_once_per_owner")
        ]

    def __str__(self) -> str:
        return self.name
