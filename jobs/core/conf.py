"""Fairshift's settings: one dict `FAIRSHIFT` in Django's settings, checked when it is first read.

Each key has its default, kind and limits here, for the dict and for the variables of the
environment (`config/settings.py`). Spans are in seconds, sizes in bytes.
"""

from __future__ import annotations

import ipaddress
import math
import os
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from jobs.core import keyring

LONGEST: Final = 100
"""Most characters of a queue's name."""


HIDDEN_NAMES: Final = (
    "*password*",
    "*passwd*",
    "*passphrase*",
    "*secret*",
    "*token*",
    "*api_key*",
    "*apikey*",
    "*private_key*",
    "*access_key*",
    "*credential*",
    "*authorization*",
    "cookie",
    "set_cookie",
)
"""Names in arguments and results whose values no page shows; `-` counts as `_`."""


class Kind(Enum):
    """The type of a value, in words."""

    SECONDS = "a number of seconds"
    WHOLE = "a whole number"
    SWITCH = "True or False"
    WORDS = "a list of words"
    PAIRS = "a list of OWNER:TASK, such as 'northwind:reports.*'"
    NETWORKS = "a list of networks, such as '10.0.0.0/8'"
    NAME = f"a name of 1 to {LONGEST} characters"
    FOLDER = "an absolute path, or empty"
    SITE = "a URL that begins with http:// or https://, or empty"
    TEXT = "a text"
    KEYS = "a key ring"
    LEVEL = "DEBUG, INFO, WARNING, ERROR, CRITICAL or OFF"


@dataclass(frozen=True, slots=True)
class Rule:
    """The default and the type of one key; numbers have limits, both included."""

    default: Any
    kind: Kind
    least: float = 0
    most: float = 0

    @property
    def allowed(self) -> str:
        """The rule in words."""
        if self.kind in {Kind.SECONDS, Kind.WHOLE}:
            return f"{self.kind.value} from {self.least:.15g} up to {self.most:.15g}"
        return self.kind.value

    def allows(self, value: Any) -> bool:
        """Say whether a value may be used."""
        if self.kind is Kind.SWITCH:
            return isinstance(value, bool)
        if self.kind is Kind.NAME:
            return isinstance(value, str) and 1 <= len(value) <= LONGEST
        if self.kind is Kind.FOLDER:
            return isinstance(value, str | os.PathLike) and (
                not str(value) or Path(value).is_absolute()
            )
        if self.kind is Kind.SITE:
            is_url = isinstance(value, str) and value.startswith(("http://", "https://"))
            return is_url or value == ""
        if self.kind in {Kind.TEXT, Kind.KEYS}:
            return isinstance(value, str)
        if self.kind is Kind.LEVEL:
            return value in Kind.LEVEL.value.replace(" or", ",").split(", ")
        if self.kind in {Kind.WORDS, Kind.PAIRS, Kind.NETWORKS}:
            # A text is iterable, too: by letters.
            is_many = isinstance(value, list | tuple | set | frozenset)
            is_words = is_many and all(isinstance(word, str) and word for word in value)
            return is_words and all(map(self._allows_word, value))
        types = int if self.kind is Kind.WHOLE else int | float
        return (
            isinstance(value, types)
            and not isinstance(value, bool)
            and math.isfinite(value)
            and self.least <= value <= self.most
        )

    def _allows_word(self, word: str) -> bool:
        if self.kind is Kind.PAIRS:
            return all(part.strip() for part in word.partition(":"))
        if self.kind is Kind.NETWORKS:
            try:
                ipaddress.ip_network(word)
            except ValueError:
                return False
        return True


RULES: Final[dict[str, Rule]] = {
    "HEARTBEAT_SECONDS": Rule(10.0, Kind.SECONDS, 0.1, 3600),
    "LEASE_SECONDS": Rule(30.0, Kind.SECONDS, 0.2, 86_400),
    "SWEEP_SECONDS": Rule(2.0, Kind.SECONDS, 0.1, 3600),
    "MISFIRE_GRACE_SECONDS": Rule(60.0, Kind.SECONDS, 10, 3600),
    "LATE_COMMIT_SECONDS": Rule(300.0, Kind.SECONDS, 10, 86_400),
    "PUBLISH_TIMEOUT_SECONDS": Rule(1.0, Kind.SECONDS, 0.05, 60),
    "PAYLOAD_MAX_BYTES": Rule(262_144, Kind.WHOLE, 1024, 64 * 2**20),
    "RESULT_MAX_BYTES": Rule(262_144, Kind.WHOLE, 1024, 64 * 2**20),
    "CHECKPOINT_MAX_BYTES": Rule(65_536, Kind.WHOLE, 1024, 16 * 2**20),
    "RUN_LOG_LEVEL": Rule("INFO", Kind.LEVEL),
    "RUN_LOG_FIRST_BYTES": Rule(200_000, Kind.WHOLE, 1_000, 64 * 2**20),
    "RUN_LOG_LAST_BYTES": Rule(800_000, Kind.WHOLE, 1_000, 64 * 2**20),
    "MAX_ATTEMPTS": Rule(3, Kind.WHOLE, 1, 100),
    "BACKOFF_SECONDS": Rule(2.0, Kind.SECONDS, 0, 86_400),
    "BACKOFF_CAP_SECONDS": Rule(600.0, Kind.SECONDS, 0, 30 * 86_400),
    "CANCEL_GRACE_SECONDS": Rule(10.0, Kind.SECONDS, 0, 3600),
    "PARTITION_DAYS_AHEAD": Rule(30, Kind.WHOLE, 2, 366),
    "RUN_DAYS": Rule(90, Kind.WHOLE, 1, 3660),
    "FAILED_RUN_DAYS": Rule(180, Kind.WHOLE, 1, 3660),
    "ATTEMPT_DAYS": Rule(3660, Kind.WHOLE, 1, 3660),
    "KEY_DAYS": Rule(30, Kind.WHOLE, 1, 3660),
    "MISSED_DAYS": Rule(90, Kind.WHOLE, 1, 3660),
    "AUDIT_DAYS": Rule(1_096, Kind.WHOLE, 90, 3660),
    "WORKER_DAYS": Rule(180, Kind.WHOLE, 1, 3660),
    "ROLLUP_DAYS": Rule(90, Kind.WHOLE, 1, 3660),
    "ARCHIVE_FOLDER": Rule("", Kind.FOLDER),
    "ALLOW_OTHER_POOLS": Rule(False, Kind.SWITCH),
    "CHILD_NICENESS": Rule(10, Kind.WHOLE, 0, 19),
    "JOBS_QUEUE": Rule("jobs", Kind.NAME),
    "SYSTEM_QUEUE": Rule("system", Kind.NAME),
    "INBOX_QUEUE": Rule("inbox", Kind.NAME),
    "NOTICES_QUEUE": Rule("notices", Kind.NAME),
    "WEBHOOK_TIMEOUT_SECONDS": Rule(10.0, Kind.SECONDS, 0.1, 60),
    "WEBHOOK_BACKOFF_SECONDS": Rule(5.0, Kind.SECONDS, 0, 3600),
    "WEBHOOK_BACKOFF_CAP_SECONDS": Rule(3600.0, Kind.SECONDS, 0, 86_400),
    "WEBHOOK_ATTEMPTS": Rule(20, Kind.WHOLE, 1, 1_000),
    "WEBHOOK_FAILURES": Rule(30, Kind.WHOLE, 1, 10_000),
    "WEBHOOK_DAYS": Rule(30, Kind.WHOLE, 1, 3660),
    "MAIL_QUIET_SECONDS": Rule(900.0, Kind.SECONDS, 0, 86_400),
    "SITE_URL": Rule("", Kind.SITE),
    "REMOTE_COMMANDS": Rule((), Kind.WORDS),
    "INBOX_ALLOWED": Rule((), Kind.PAIRS),
    "OFFERED_TASKS": Rule((), Kind.WORDS),
    "HTTP_ALLOWED_HOSTS": Rule((), Kind.WORDS),
    "MANAGEMENT_COMMANDS": Rule((), Kind.WORDS),
    "ENCRYPTION_KEYS": Rule("", Kind.KEYS),
    "ENCRYPTION_KEYS_FILE": Rule("", Kind.TEXT),
    "ENCRYPTION_KEYS_COMMAND": Rule("", Kind.TEXT),
    "ENCRYPTION_REQUIRED": Rule(False, Kind.SWITCH),
    "HIDDEN_NAMES": Rule(HIDDEN_NAMES, Kind.WORDS),
    "API_MAX_BODY_BYTES": Rule(16 * 2**20, Kind.WHOLE, 1024, 256 * 2**20),
    "API_MAX_BATCH": Rule(10_000, Kind.WHOLE, 1, 100_000),
    "API_MAX_DEPTH": Rule(64, Kind.WHOLE, 4, 200),
    "API_MAX_STREAMS": Rule(2, Kind.WHOLE, 0, 10_000),
    "API_STREAM_SECONDS": Rule(300.0, Kind.SECONDS, 1, 86_400),
    "API_TOKEN_PER_MINUTE": Rule(60_000, Kind.WHOLE, 1, 10_000_000),
    "API_OWNER_PER_MINUTE": Rule(120_000, Kind.WHOLE, 1, 10_000_000),
    "API_OWNER_WAITING_RUNS": Rule(1_000_000, Kind.WHOLE, 1, 100_000_000),
    "API_OWNER_JOBS": Rule(1_000_000, Kind.WHOLE, 1, 100_000_000),
    "METRICS_ADDRESSES": Rule((), Kind.NETWORKS),
    "METRICS_NAMES": Rule(50, Kind.WHOLE, 1, 1_000),
}
DEFAULTS: Final[dict[str, Any]] = {key: rule.default for key, rule in RULES.items()}

_NOTHING: Final[dict[str, Any]] = {}
# The last dict that was checked, and the values with it.
_known: Final[list[tuple[Any, dict[str, Any]]]] = [(_NOTHING, DEFAULTS)]


def unknown_settings() -> list[tuple[str, str | None]]:
    """Return the unknown keys of `FAIRSHIFT`, each with the nearest known one or None."""
    given = _given()
    keys = given if isinstance(given, dict) else ()
    return [(str(key), _near(key)) for key in keys if key not in RULES]


def wrong_settings() -> list[str]:
    """Return what is wrong with the values of `FAIRSHIFT`: key, value and limit of each."""
    given = _given()
    if not isinstance(given, dict):
        return [f"FAIRSHIFT is {given!r:.120}, but must be a dict of settings."]
    return [
        problem
        for key, rule in RULES.items()
        if key in given and (problem := _problem(key, rule, given[key]))
    ]


def _problem(key: str, rule: Rule, value: Any) -> str:
    """Return what is wrong with a value, without the keys of a ring; empty if it is good."""
    if not rule.allows(value):
        shown = "no text" if rule.kind is Kind.KEYS else f"{value!r:.120}"
        return f"FAIRSHIFT[{key!r}] is {shown}, but must be {rule.allowed}."
    if rule.kind is Kind.KEYS and value:
        try:
            keyring.parsed(value)
        except keyring.BadRing as error:
            return f"FAIRSHIFT[{key!r}]: the key ring {error}."
    return ""


def refuse_wrong_settings() -> None:
    """Raise ImproperlyConfigured for all that `wrong_settings` finds."""
    if wrong := wrong_settings():
        raise ImproperlyConfigured(" ".join(wrong))


def setting(name: str) -> Any:
    """Return the value of one setting; raise ImproperlyConfigured if any key or value is bad."""
    given, values = _known[0]
    if _given() is not given:
        values = _checked()
    return values[name]


def early_setting(name: str) -> Any:
    """Return the value of one setting, or its default if that value is bad; other keys may be.

    For Celery's settings: without these no check could say which key is bad.
    """
    given = _given()
    value = given.get(name, DEFAULTS[name]) if isinstance(given, dict) else DEFAULTS[name]
    return value if RULES[name].allows(value) else DEFAULTS[name]


def plain_queues() -> frozenset[str]:
    """Return the queues of Fairshift's own messages, which carry no runs."""
    return frozenset(setting(name) for name in ("SYSTEM_QUEUE", "INBOX_QUEUE", "NOTICES_QUEUE"))


def how_to_set(name: str) -> str:
    """Return how to set a key: in the dict, or in Fairshift's own project by a variable."""
    is_ours = os.environ.get("DJANGO_SETTINGS_MODULE") == "config.settings"
    return f"FAIRSHIFT_{name}" if is_ours else f'FAIRSHIFT = {{"{name}": ...}}'


def _checked() -> dict[str, Any]:
    given = _given()
    refuse_wrong_settings()
    for key, near in unknown_settings():
        hint = f" Did you mean {near!r}?" if near else ""
        raise ImproperlyConfigured(f"FAIRSHIFT has no setting {key!r}.{hint}")
    values = DEFAULTS | given
    _known[0] = given, values
    return values


def _given() -> Any:
    return getattr(settings, "FAIRSHIFT", _NOTHING)


def _near(key: Any) -> str | None:
    # Also without the unit: LEESE is near LEASE, but not LEASE_SECONDS.
    names = {name.removesuffix("_SECONDS").removesuffix("_BYTES"): name for name in RULES}
    names |= {name: name for name in RULES}
    return next((names[near] for near in get_close_matches(str(key).upper(), names, n=1)), None)
