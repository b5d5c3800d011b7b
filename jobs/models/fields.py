"""What several models share: validators and choices."""

from __future__ import annotations

from zoneinfo import ZoneInfo, available_timezones

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.utils.translation import gettext_lazy as _

PRIORITY_LIMITS = (MinValueValidator(0), MaxValueValidator(9))
ATTEMPT_LIMITS = (MinValueValidator(1), MaxValueValidator(100))
WEIGHT_LIMITS = (MinValueValidator(1), MaxValueValidator(1000))
SECONDS_LIMITS = (MinValueValidator(0.1), MaxValueValidator(30 * 86_400.0))

# NUL is the one character that PostgreSQL's text cannot hold.
no_nul = RegexValidator("\x00", _("The NUL character is not allowed."), inverse_match=True)

# Else the queues would take the owner for the shared one.
owner_name = RegexValidator("^[A-Za-z0-9]", _("Begin with a letter or a digit."))


def validate_zone(value: str) -> None:
    """Refuse a name that is no IANA time zone."""
    if value not in available_timezones():
        raise ValidationError(
            _("%(zone)s is not an IANA time zone, such as Europe/Berlin."), params={"zone": value}
        )
    ZoneInfo(value)
