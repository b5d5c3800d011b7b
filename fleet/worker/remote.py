"""Celery's remote control, limited to commands that only read, and those that a setting names.

Every client of the broker can send any command. Answers go through Redis to Flower, so passwords
are masked.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Any, Final

from celery.app.defaults import SETTING_KEYS
from celery.exceptions import ImproperlyConfigured
from celery.worker import control
from celery.worker import state as worker_state
from celery.worker.consumer.control import Control
from celery.worker.consumer.gossip import Gossip
from celery.worker.consumer.mingle import Mingle
from celery.worker.control import Panel

from fleet import log_events
from fleet.contract import is_hint
from fleet.worker.hello import say_hello

logger = logging.getLogger(__name__)

Command = Callable[..., Any]

READING: Final = frozenset(
    {
        *("active", "active_queues", "clock", "conf", "hello", "ping", "query_task"),
        *("registered", "reserved", "revoked", "scheduled", "stats"),
        "enable_events",  # Flower sends it; it changes which events are sent, and nothing else
    }
)
"""Celery's commands that are always followed; not `report`, which has all of Django's settings."""

LONGEST_PATTERN: Final = 255
"""In characters: the length limit of a node's name."""
MASK: Final = "********"
_IN_URL: Final = re.compile(r"://[^/\n]*@")
_IN_QUERY: Final = re.compile(
    r"([?&;][^=&;?\s]*(?:pass|secret|token|key)[^=&;\s]*=)[^&;\s'\"]*", re.IGNORECASE
)
_SECRET: Final = re.compile(r"pass(?!ive)|secret|token|credential|api_?key", re.IGNORECASE)


def commands(opened: Collection[str] = ()) -> dict[str, Command]:
    """Return a worker's commands by name: those that read, those `opened`, and refusals.

    The user's own commands made with Celery's `inspect_command` read as well. Raises
    ImproperlyConfigured for an opened name that is no command.
    """
    for name in opened:
        if name not in Panel.data:
            near = get_close_matches(name, Panel.data, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ImproperlyConfigured(
                f"REMOTE_COMMANDS names {name!r}, which is no command of Celery's remote control."
                f"{hint} (FAIRSHIFT_REMOTE_COMMANDS)"
            )
    followed = {Panel.data[name] for name in (*READING, *opened)} | set(_own_inspections())
    given: dict[str, Command] = {
        name: partial(_answer, command) if command in followed else partial(_refuse, name)
        for name, command in Panel.data.items()
    }
    given["conf"] = given["dump_conf"] = partial(_answer, _conf)
    if not _shares_revoked(opened):
        given["hello"] = partial(_answer, _hello)
    return given


def limit(consumer: Any, given: Mapping[str, Command], opened: Collection[str] = ()) -> None:
    """Have a worker's consumer follow only these commands; call it before the consumer starts."""
    for step in consumer.steps:
        if isinstance(step, Control):
            node = step.box.node
            node.handlers = given
            node.handle_message = partial(_handle_unless_pattern, node.handle_message)
        elif isinstance(step, Mingle):
            step.send_hello = say_hello
            if not _shares_revoked(opened):
                step.on_revoked_received = _ignore_revoked
        elif isinstance(step, Gossip) and "election" not in opened:
            # Elections are not used, and many would fill the worker's memory.
            step.event_handlers = {}


def masked(value: Any) -> Any:
    """Return an answer without the passwords in URLs, their queries and secret keys' values, and
    without the arguments of durable runs.
    """
    if isinstance(value, str):
        return _IN_QUERY.sub(rf"\g<1>{MASK}", _IN_URL.sub(f"://{MASK}@", value))
    if isinstance(value, Mapping):
        if {"id", "args", "kwargs"} <= value.keys() and not _is_plain(value["id"]):
            # A user of Flower needs no permission to view arguments; the admin requires one.
            value = {**value, "args": "", "kwargs": ""}
        return {
            masked(key): MASK if _is_secret(key) and item else masked(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [masked(item) for item in value]
    return value


def _is_plain(task_id: Any) -> bool:
    """Say whether the worker has this task, and it is no durable run."""
    request = worker_state.requests.get(task_id)
    return request is not None and not is_hint(request.request_dict)


def _is_secret(key: Any) -> bool:
    return isinstance(key, str) and _SECRET.search(key) is not None


def _own_inspections() -> list[Command]:
    """Return the inspect commands that the user's code has added."""
    return [
        Panel.data[name]
        for name, about in Panel.meta.items()
        if about.type == "inspect" and Panel.data[name].__module__ != control.__name__
    ]


def _answer(command: Command, state: Any, **arguments: Any) -> Any:
    return masked(command(state, **arguments))


def _refuse(name: str, state: Any, **_arguments: Any) -> dict[str, str]:  # noqa: ARG001  Kombu's
    return {
        "error": f"{name} is refused: this worker follows only commands that read. The setting "
        "REMOTE_COMMANDS (FAIRSHIFT_REMOTE_COMMANDS) opens others by name"
    }


def _conf(state: Any, **arguments: Any) -> Any:
    """Answer Celery's own settings, without Django's."""
    prefix = state.app.conf.prefix or ""
    table = control.conf(state, **arguments)
    return {
        name: value
        for name, value in table.items()
        if name in SETTING_KEYS
        or (prefix and name.startswith(prefix) and name[len(prefix) :].lower() in SETTING_KEYS)
    }


def _handle_unless_pattern(handle: Command, body: Any, message: Any = None) -> Any:
    """Handle a message, unless it has a regular expression or a long pattern.

    A short regular expression can block the worker's loop for years.
    """
    pattern, matcher = body.get("pattern"), body.get("matcher")
    is_short = isinstance(pattern, str) and len(pattern) <= LONGEST_PATTERN
    if pattern and matcher and (matcher != "glob" or not is_short):
        log_events.COMMAND_REFUSED.log(logger, pattern=pattern, matcher=matcher)
        return None
    return handle(body, message)


def _shares_revoked(opened: Collection[str]) -> bool:
    """Say whether workers exchange the ids of revoked tasks."""
    return bool({"revoke", "terminate"} & set(opened))


def _ignore_revoked(_consumer: Any, _revoked: Any) -> None:
    """Ignore the revoked ids in a reply to our hello: any client can write one."""


def _hello(state: Any, from_node: str, **_revoked: Any) -> Any:
    """Reply to another worker's hello; ignore its revoked ids."""
    return control.hello(state, from_node)
