"""When wrong passwords lock a login: ten for a name from an address, 100 from an address."""

from __future__ import annotations

from typing import Any, Final

from axes.attempts import get_cool_off_threshold
from axes.models import AccessAttempt
from django.db.models import Sum

ADDRESS_LIMIT: Final = 100
"""Wrong passwords from one address, whatever the names, within AXES_COOLOFF_TIME."""


def lockout_parameters(request: Any, _credentials: Any = None) -> list[Any]:
    """Return what django-axes counts wrong passwords by (AXES_LOCKOUT_PARAMETERS).

    By address alone, ten of one person would lock out everyone behind the same proxy.
    """
    attempts = AccessAttempt.objects.filter(
        ip_address=getattr(request, "axes_ip_address", None),
        attempt_time__gte=get_cool_off_threshold(request),
    )
    failures = attempts.aggregate(all=Sum("failures_since_start"))["all"] or 0
    return ["ip_address"] if failures >= ADDRESS_LIMIT else [["username", "ip_address"]]
