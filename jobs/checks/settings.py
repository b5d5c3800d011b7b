"""Checks of settings that would break a promise."""

import math
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from celery import current_app
from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as Caution

from jobs.checks.wiring import is_of_project
from jobs.core.conf import DEFAULTS, how_to_set, unknown_settings

JSON = {"json", "application/json"}
RUNS_CODE = {"pickle", "application/x-python-serialize"}
LOOPBACK = {"localhost", "127.0.0.1", "::1"}
REPLY_SECONDS = 2.0
"""Least seconds between the socket timeout and the end of a lease, to renew it."""


@register("fairshift")
def check_settings(**_arguments: Any) -> list[CheckMessage]:
    """Refuse unknown keys, a lease that a late heartbeat loses, unsafe Celery settings."""
    return [*_unknown_keys(), *_lease(), *_celery(), *_time_zones()]


@register("fairshift", deploy=True)
def check_flower(**_arguments: Any) -> list[CheckMessage]:
    """Warn of a Flower whose login travels in clear text."""
    url = urlsplit(getattr(settings, "FLOWER_URL", ""))
    if url.scheme != "http" or url.hostname in LOOPBACK:
        return []
    return [
        Caution(
            f"FLOWER_URL is plain http to {url.hostname}: its login can be read on the way.",
            hint="Put Flower behind TLS and give FLOWER_URL as https://.",
            id="fairshift.W006",
        )
    ]


@register("fairshift", deploy=True)
def check_patience(**_arguments: Any) -> list[CheckMessage]:
    """Refuse a lease that ends while a worker still waits for an answer of Redis."""
    if not is_of_project(current_app):
        return []  # another check reports this
    options = current_app.conf.broker_transport_options
    lease = min(_values()["LEASE_SECONDS"], options.get("lease_seconds", math.inf))
    waits = options.get("socket_timeout")
    if waits is not None and lease >= waits + REPLY_SECONDS:
        return []
    patience = "without end" if waits is None else f"for {waits:g} s"
    return [
        Error(
            f"A worker waits {patience} for a Redis that hangs, and its lease is {lease:g} s: live"
            " runs would be started again.",
            hint="Set socket_timeout in CELERY_BROKER_TRANSPORT_OPTIONS to at least"
            f" {REPLY_SECONDS:g} s less than the lease, or {how_to_set('LEASE_SECONDS')} to more.",
            id="fairshift.E007",
        )
    ]


def _unknown_keys() -> Iterator[CheckMessage]:
    for key, near_miss in unknown_settings():
        yield Error(
            f"FAIRSHIFT has no setting {key!r}.",
            hint=f"Did you mean {near_miss}?"
            if near_miss
            else f"Known are: {', '.join(DEFAULTS)}.",
            id="fairshift.E001",
        )


def _lease() -> Iterator[CheckMessage]:
    values = _values()
    heartbeat, lease = values["HEARTBEAT_SECONDS"], values["LEASE_SECONDS"]
    if lease < 2 * heartbeat:
        yield Error(
            f"A lease of {lease:g} s ends before a heartbeat that is missed once, at"
            f" {2 * heartbeat:g} s: live runs would be started again.",
            hint=f"Set {how_to_set('LEASE_SECONDS')} to at least twice"
            f" {how_to_set('HEARTBEAT_SECONDS')}.",
            id="fairshift.E002",
        )


def _values() -> dict[str, Any]:
    # Not jobs.core.conf.setting, which raises while any key is unknown.
    return DEFAULTS | getattr(settings, "FAIRSHIFT", {})


def _celery() -> Iterator[CheckMessage]:
    if not is_of_project(current_app):
        return  # another check reports this
    conf = current_app.conf
    for setting in ("accept_content", "result_accept_content"):
        name, accepted = f"CELERY_{setting.upper()}", set(conf[setting] or ())
        if unsafe := sorted(accepted & RUNS_CODE):
            yield Error(
                f"{name} accepts {', '.join(unsafe)}: a client of Redis could run code.",
                hint=f"Set {name} to ['json'].",
                id="fairshift.E003",
            )
        if others := sorted(accepted - JSON - RUNS_CODE):
            yield Caution(
                f"{name} accepts {', '.join(others)}: a client that writes to Redis chooses what"
                f" {'its decoder reads' if len(others) == 1 else 'their decoders read'}.",
                hint=f"Set {name} to ['json'], or make sure that decoding runs no code, and silence"
                " this with SILENCED_SYSTEM_CHECKS.",
                id="fairshift.W007",
            )
    if not conf.task_acks_late:
        yield Error(
            "CELERY_TASK_ACKS_LATE is off: a killed worker would lose what it had taken.",
            hint="Remove CELERY_TASK_ACKS_LATE, or set it to True.",
            id="fairshift.E004",
        )
    if conf.task_serializer not in {*JSON, *(conf.accept_content or ())}:
        yield Error(
            f"CELERY_TASK_SERIALIZER is {conf.task_serializer}, which CELERY_ACCEPT_CONTENT does"
            " not name: workers would refuse the messages.",
            hint="Remove CELERY_TASK_SERIALIZER, or set it to 'json'.",
            id="fairshift.E005",
        )


def _time_zones() -> Iterator[CheckMessage]:
    if not settings.USE_TZ:
        yield Error(
            "USE_TZ is off: a time without a zone says nothing of when a run is due.",
            hint="Set USE_TZ to True.",
            id="fairshift.E009",
        )
