"""API tokens: the scopes of a program, for one owner or for the whole installation."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from jobs.models.fields import author_key, one_line, validate_scopes
from jobs.models.owner import Owner

NAME_LIMIT: Final = 100
PREFIX_LIMIT: Final = 16


class Scope(models.TextChoices):
    """The permissions of a caller. No scope includes another one."""

    READ = "read", _("read: see runs, jobs, calendars and owners")
    SUBMIT = "submit", _("submit: make runs")
    OPERATE = (
        "operate",
        _("operate: cancel, retry, pause; see arguments, results and error messages"),
    )
    APPROVE = "approve", _("approve: decide on windows")
    ADMIN = "admin", _("admin: change jobs, calendars, members and tokens")


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def usable(self) -> ApiTokenQuerySet:
        """Tokens that are neither revoked nor expired, by PostgreSQL's clock, nor left alone."""
        lasting = models.Q(expires_at=None) | models.Q(expires_at__gt=Now())
        is_alone = models.Q(has_maker=True, created_by=None, created_by_token=None)
        return self.filter(lasting, ~is_alone, revoked_at=None)


class ApiToken(models.Model):
    """The hash of a token's secret, and what it allows. The secret is shown once and not stored."""

    owner = models.ForeignKey(
        Owner,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="tokens",
        verbose_name=_("owner"),
        help_text=_("Empty: a token for all owners of the installation."),
    )
    name = models.CharField(
        _("name"),
        max_length=NAME_LIMIT,
        validators=[one_line],
        help_text=_("The program that uses it, for the audit."),
    )
    prefix = models.CharField(_("prefix"), max_length=PREFIX_LIMIT, unique=True, editable=False)
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    scopes = models.JSONField(_("scopes"), validators=[validate_scopes])
    created_by = author_key(settings.AUTH_USER_MODEL, _("made by"))
    # Who made it, if it was a program: four eyes are those of the maker, too.
    created_by_token = author_key("self", _("made by the token"))
    # Whether a user or a token made it: it ends with them. Code and commands leave no maker.
    has_maker = models.BooleanField(default=False, db_default=False, editable=False)
    created_at = models.DateTimeField(_("made at"), db_default=Now(), editable=False)
    expires_at = models.DateTimeField(
        _("expires at"), null=True, blank=True, help_text=_("Empty: it does not expire.")
    )
    revoked_at = models.DateTimeField(_("revoked at"), null=True, editable=False)
    # To the minute: a write with each request would cost more than the request.
    last_used_at = models.DateTimeField(_("last used at"), null=True, editable=False)

    objects = ApiTokenQuerySet.as_manager()

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")
        ordering = ("-id",)
        indexes = [models.Index(name="token_of_owner", fields=("owner", "-id"))]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def maker(self) -> Any:
        """The token or user that made it; None if it is gone, or if code or a command made this."""
        return self.created_by_token if self.created_by_token_id else self.created_by

    def get_username(self) -> str:
        """Return the actor's name for the audit; users have the same method."""
        return f"token {self}"


def columns_of(actor: Any, user: str, token: str) -> dict[str, Any]:
    """Return the values of the columns `user` and `token`: the actor in one, None in the other."""
    is_token = isinstance(actor, ApiToken)
    return {user: None if is_token else actor, token: actor if is_token else None}


def identity(actor: Any) -> tuple[str, str]:
    """Return the kind and the key of a user or a token."""
    return "token" if isinstance(actor, ApiToken) else "user", str(actor.pk)


def identities(actor: Any) -> set[tuple[str, str]]:
    """Return whose eyes a user or a token has, for four eyes: its own, and its makers'."""
    found = {identity(actor)}
    # A token may be made by a token, and a maker that is revoked has asked all the same.
    while isinstance(actor, ApiToken) and (actor := actor.maker) is not None:
        found.add(identity(actor))
    return found
