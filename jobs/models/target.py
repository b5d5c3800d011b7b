"""Targets that runs act on, such as devices or sites; and groups of them."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.fields import one_line
from jobs.models.owner import Owner


class Target(models.Model):
    """One target of an owner, with a unique name."""

    owner = models.ForeignKey(Owner, models.PROTECT, related_name="targets")
    name = models.CharField(_("name"), max_length=200, validators=[one_line])
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


class TargetGroup(models.Model):
    """A named group of an owner's targets: a calendar of the group applies to each target."""

    owner = models.ForeignKey(Owner, models.PROTECT, related_name="target_groups")
    name = models.CharField(_("name"), max_length=200, validators=[one_line])
    targets = models.ManyToManyField(
        Target, related_name="groups", blank=True, verbose_name=_("targets")
    )

    class Meta:
        verbose_name = _("target group")
        verbose_name_plural = _("target groups")
        ordering = ("owner", "name")
        constraints = [
            models.UniqueConstraint(fields=("owner", "name"), name="target_group_once_per_owner")
        ]

    def __str__(self) -> str:
        return self.name
