"""Checks of encryption at rest: a key ring that can be used, and keys that runs wait for."""

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as Caution
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError

from jobs.core import crypto
from jobs.core.conf import how_to_set, setting
from jobs.models import Run


@register("fairshift", deploy=True)
def check_encryption(**_arguments: Any) -> list[CheckMessage]:
    """Refuse a key ring that cannot be used; warn of none, and of keys that runs wait for."""
    try:
        setting("ENCRYPTION_KEYS")
    except ImproperlyConfigured:
        return []  # with unknown settings none can be read, which E001 says
    try:
        ring = crypto.ring()
    except ImproperlyConfigured as error:
        return [
            Error(
                f"The key ring cannot be used: {error}",
                hint="Correct the setting; `manage.py secrets make-key` prints a new key.",
                id="fairshift.E034",
            )
        ]
    if ring is None:
        return [
            Caution(
                "Arguments, results and errors are stored unencrypted.",
                hint=f"Set {how_to_set('ENCRYPTION_KEYS')} to a key that `manage.py secrets"
                " make-key` prints.",
                id="fairshift.W035",
            )
        ]
    return list(_waits_for_keys())


def _waits_for_keys() -> Iterator[CheckMessage]:
    blocked = Run.objects.filter(state="queued", blocked_by="key").exclude(blocked_by="")
    try:
        keys = sorted(set(blocked.values_list("payload_key", flat=True)[:10_000]))
    except DatabaseError:  # E010 or E012 says why
        return
    if keys:
        yield Caution(
            f"Runs wait for encryption keys that no worker of their queue has: {_listed(keys)}.",
            hint="Give these keys to all workers, before the one that encrypts.",
            id="fairshift.W036",
        )


def _listed(keys: list[int]) -> str:
    return ", ".join(map(str, keys))
