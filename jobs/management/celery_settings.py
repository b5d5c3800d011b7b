"""`manage.py fleet settings`: every setting of Celery that counts, whose it is, and its effect."""

from __future__ import annotations

import json
from argparse import _SubParsersAction
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from celery import Celery, current_app
from celery.app.defaults import DEFAULTS
from kombu.utils.url import maybe_sanitize_url

from jobs.celery_setup import MERGED, OURS
from jobs.client.terminal import say

PROJECT: Final = "project"
FAIRSHIFT: Final = "Fairshift"
CELERY: Final = "Celery"
SECRET: Final = ("password", "secret", "key", "credentials", "token")
"""Parts of the names of settings whose values are not shown."""
_OWN_TASKS: Final = "keep: for your tasks; Fairshift's have their own"
_NO_QUEUE: Final = "no effect: RabbitMQ only"
NOTES: Final = {
    "accept_content": "keep JSON: with pickle, a client of Redis could run code",
    "beat_schedule": "keep: beat makes PeriodicTasks of it",
    "broker_pool_limit": "keep",
    "broker_transport": "leave it out: the URL names the transport",
    "broker_connection_max_retries": "no effect on workers: they try again without end",
    "imports": "keep",
    "include": "keep",
    "result_expires": "keep",
    "result_serializer": "keep",
    "task_always_eager": "for plain calls only",
    "task_annotations": _OWN_TASKS,
    "task_compression": "keep: gzip, bzip2 or lzma, up to 16 MiB",
    "task_create_missing_queues": "keep: such a queue is not fair",
    "task_default_priority": "keep: 0 is first; for plain calls",
    "task_default_rate_limit": _OWN_TASKS,
    "task_ignore_result": "keep: off at first; on, a plain call writes no row",
    "task_queue_max_priority": _NO_QUEUE,
    "task_queue_ha_policy": _NO_QUEUE,
    "task_default_queue_type": _NO_QUEUE,
    "task_reject_on_worker_lost": "keep off: the fair queue does this, and counts it",
    "task_serializer": "keep JSON: workers refuse others",
    "task_soft_time_limit": _OWN_TASKS,
    "task_time_limit": _OWN_TASKS,
    "task_track_started": "keep",
    "timezone": "keep: for your crontabs in code; jobs have zones of their own",
    "worker_cancel_long_running_tasks_on_connection_loss": (
        "keep off: a task continues while Redis is away"
    ),
    "worker_concurrency": "keep",
    "worker_enable_remote_control": "keep: see `REMOTE_COMMANDS`",
    "worker_max_memory_per_child": "keep: for a system worker too",
    "worker_max_tasks_per_child": "keep: for a system worker too",
    "worker_pool": "keep prefork: others run durable runs only with `ALLOW_OTHER_POOLS`",
    "worker_proc_alive_timeout": "at least 10 minutes",
}
"""What other settings of Celery do with Fairshift, as far as it is not what they do without."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of Celery: its value as text, who set it, and what it does here."""

    name: str
    value: str
    set_by: str
    effect: str


def add_part(parts: _SubParsersAction[Any]) -> None:
    """Add the part to the command."""
    part = parts.add_parser(
        "settings",
        help="Celery's settings: value, whether it is yours, Fairshift's or Celery's, effect",
        description=(
            "Without --all, only settings that the project or Fairshift has set, or that have"
            " another effect with Fairshift. Passwords are not shown."
        ),
    )
    part.set_defaults(act_on=handle)
    part.add_argument("--all", action="store_true", help="Celery's defaults, too")
    part.add_argument("--json", action="store_true", help="one JSON object")
    part.add_argument("names", nargs="*", metavar="NAME", help="these only, such as task_queues")


def handle(given: dict[str, Any]) -> None:
    """Print the settings."""
    asked = {name.lower().removeprefix("celery_") for name in given["names"]}
    found = [
        row
        for row in effective_settings(current_app)
        if (row.name in asked if asked else given["all"] or row.set_by != CELERY or row.effect)
    ]
    if given["json"]:
        say(json.dumps({"settings": [asdict(row) for row in found]}))
        return
    for row in found:
        say(f"CELERY_{row.name.upper()} = {row.value}")
        say(f"    {row.set_by}" + (f" – {row.effect}" if row.effect else ""))


def effective_settings(app: Celery) -> Iterator[Setting]:
    """Yield all settings of an app by name."""
    for name in sorted(DEFAULTS):
        value, default = app.conf[name], DEFAULTS[name]
        make, effect = OURS.get(name, (None, NOTES.get(name, "")))
        if value == default and name not in MERGED:
            by = CELERY
        elif make is not None and (name in MERGED or value == make()):
            by = FAIRSHIFT
        else:
            by = PROJECT
        yield Setting(name, _shown(name, value), by, effect)


def _shown(name: str, value: Any) -> str:
    if value and any(word in name for word in SECRET):
        return "••••"
    if name == "broker_transport_options":
        value = {
            key: "••••" if any(word in key for word in (*SECRET, "kwargs")) else part
            for key, part in value.items()
        }
    if name == "task_queues":
        return ", ".join(value if isinstance(value, dict) else (queue.name for queue in value))
    return maybe_sanitize_url(value) if isinstance(value, str) else repr(value)
