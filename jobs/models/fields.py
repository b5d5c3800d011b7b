"""Validators, limits and foreign keys of models. Migrations may import this module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.core.exceptions import ValidationError
from django.core.validators import (
    BaseValidator,
    MaxValueValidator,
    MinValueValidator,
    RegexValidator,
)
from django.db import models
from django.utils.translation import gettext_lazy as _

from fleet import OWNER_NAME


def whole_numbers(least: int, most: int) -> tuple[BaseValidator, ...]:
    """Return validators whose message has both limits."""
    message = f"This is a whole number from {least} to {most}."
    return MinValueValidator(least, message), MaxValueValidator(most, message)


PRIORITY_LIMITS = (MinValueValidator(0), MaxValueValidator(9))
ATTEMPT_LIMITS = (MinValueValidator(1), MaxValueValidator(100))
WEIGHT_MOST = 1000
COUNT_MOST = 2**31 - 1
WEIGHT_LIMITS = whole_numbers(1, WEIGHT_MOST)
COUNT_LIMITS = whole_numbers(1, COUNT_MOST)
DAYS_MOST = 3660
DAYS_LIMITS = whole_numbers(1, DAYS_MOST)
OBJECTIVE_SECONDS_MOST = 86_400
OBJECTIVE_SECONDS_LIMITS = whole_numbers(1, OBJECTIVE_SECONDS_MOST)
OBJECTIVE_PERCENT_LEAST = 50.0
OBJECTIVE_PERCENT_MOST = 99.9
OBJECTIVE_PERCENT_LIMITS = (
    MinValueValidator(OBJECTIVE_PERCENT_LEAST, "This is a number from 50 to 99.9."),
    MaxValueValidator(OBJECTIVE_PERCENT_MOST, "This is a number from 50 to 99.9."),
)
SECONDS_LIMITS = (MinValueValidator(0.1), MaxValueValidator(30 * 86_400.0))

# PostgreSQL's text cannot store NUL.
no_nul = RegexValidator("\x00", _("The NUL character is not allowed."), inverse_match=True)

# As `jobs.core.inputs.refuse_name`: terminals, logs and lists show names.
one_line = RegexValidator(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029]",
    _("Control characters are not allowed."),
    inverse_match=True,
)

# For forms, the table and the fair queues, which treat other names as the shared owner.
OWNER_RULE = _("1 to 100 letters, digits, “.”, “_” and “-”, beginning with a letter or a digit.")
OWNER_LIMIT = 100
owner_name = RegexValidator(rf"^{OWNER_NAME.pattern}\Z", OWNER_RULE)

SCOPES = ("read", "submit", "operate", "approve", "admin")


def validate_scopes(value: object) -> None:
    """Raise ValidationError unless the value is a list of scopes, at least one, each once."""
    given = value if isinstance(value, list) else []
    if not given or any(given.count(one) > 1 or one not in SCOPES for one in given):
        raise ValidationError(
            _("Choose at least one of: %(scopes)s."), params={"scopes": ", ".join(SCOPES)}
        )


def validate_zone(value: str) -> None:
    """Raise ValidationError for a name that is no IANA time zone."""
    if value not in available_timezones():
        raise ValidationError(
            _("%(zone)s is not an IANA time zone, such as Europe/Berlin."), params={"zone": value}
        )
    ZoneInfo(value)


def author_key(to: type[models.Model] | str, label: Any = None) -> Any:
    """Return a foreign key to the user or token that made a row; null when that one is deleted."""
    return models.ForeignKey(
        to, models.SET_NULL, null=True, editable=False, related_name="+", verbose_name=label
    )


def lasting_key(to: type[models.Model] | str, label: Any = None, **more: Any) -> Any:
    """Return a foreign key whose value stays when the other row is deleted: no constraint."""
    return models.ForeignKey(
        to,
        models.DO_NOTHING,
        null=True,
        related_name="+",
        db_constraint=False,
        verbose_name=label,
        **more,
    )


def mark_deleted(collector: Any, field: Any, rows: Sequence[Any], using: str) -> None:  # noqa: ARG001  Django hands it in
    """Mark rows as deleted with what this key names: an `on_delete`. `DELETED` is what is set."""
    for name, value in field.model.DELETED.items():
        collector.add_field_update(field.model._meta.get_field(name), value, rows)
    collector.add_field_update(field, None, rows)
