"""Typed readers of environment variables that refuse bad values.

An empty variable counts as not set. A refusal is an ImproperlyConfigured with the variable's name,
its value (never for secrets) and what is allowed.
"""

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from zoneinfo import available_timezones

from django.core.exceptions import ImproperlyConfigured

from jobs.core.conf import Kind, Rule

T = TypeVar("T")
N = TypeVar("N", int, float)

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off"})


class Environment:
    """Reads `variables` and remembers which names are known."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self._known: set[str] = set()

    def has(self, name: str) -> bool:
        """Say whether the variable is set and not empty."""
        self._known.add(name)
        return self._variables.get(name, "").strip() != ""

    def text(self, name: str, *, default: str | None = None) -> str:
        """Return the variable's text; it is required if there is no default."""
        if self.has(name):
            return self._variables[name].strip()
        return _required(name, default)

    def boolean(self, name: str, *, default: bool | None = None) -> bool:
        """Return true for 1, true, yes, on and false for 0, false, no, off, in any case."""
        if not self.has(name):
            return _required(name, default)
        word = self.text(name).lower()
        if word not in TRUE_WORDS | FALSE_WORDS:
            raise _refusal(name, self.text(name), "one of 1, true, yes, on, 0, false, no, off")
        return word in TRUE_WORDS

    def integer(
        self,
        name: str,
        *,
        default: int | None = None,
        minimum: int | None = None,
        maximum: int | None = None,
    ) -> int:
        """Return a whole number within the limits, both included."""
        if not self.has(name):
            return _required(name, default)
        return self._number(name, int, "a whole number", minimum, maximum)

    def seconds(
        self,
        name: str,
        *,
        default: float | None = None,
        minimum: float = 0,
        maximum: float | None = None,
    ) -> float:
        """Return a time span in seconds, fractions allowed, within the limits, both included."""
        if not self.has(name):
            return _required(name, default)
        return self._number(name, float, "a number of seconds", minimum, maximum)

    def _number(
        self,
        name: str,
        kind: Callable[[str], N],
        what: str,
        minimum: float | None,
        maximum: float | None,
    ) -> N:
        lower = f" from {minimum:.15g}" if minimum is not None else ""
        upper = f" up to {maximum:.15g}" if maximum is not None else ""
        refusal = _refusal(name, self.text(name), what + lower + upper)
        try:
            number = kind(self.text(name))
        except ValueError:
            raise refusal from None
        is_above = minimum is None or number >= minimum
        is_below = maximum is None or number <= maximum
        # False for a NaN.
        is_finite = abs(number) < math.inf
        if not (is_finite and is_above and is_below):
            raise refusal
        return number

    def choice(self, name: str, *, allowed: Iterable[str], default: str | None = None) -> str:
        """Return the one of `allowed` that the variable names; case does not matter."""
        if not self.has(name):
            return _required(name, default)
        by_lower = {word.lower(): word for word in allowed}
        given = self.text(name)
        if given.lower() not in by_lower:
            choices = f"one of {', '.join(by_lower.values())}"
            raise _refusal(name, given, choices, near=_near(given, by_lower.values()))
        return by_lower[given.lower()]

    def words(self, name: str, *, default: Iterable[str] | None = None) -> list[str]:
        """Return the comma-separated parts, trimmed, without empty ones."""
        if not self.has(name):
            return list(_required(name, default))
        return [word for word in (part.strip() for part in self.text(name).split(",")) if word]

    def path(self, name: str, *, default: Path | None = None) -> Path:
        """Return an absolute path; `~` stands for the home folder."""
        if not self.has(name):
            return _required(name, default)
        path = Path(self.text(name)).expanduser()
        if not path.is_absolute():
            raise _refusal(name, self.text(name), "an absolute path")
        return path

    def time_zone(self, name: str, *, default: str | None = None) -> str:
        """Return the name of an IANA time zone."""
        if not self.has(name):
            return _required(name, default)
        given, zones = self.text(name), available_timezones()
        if given not in zones:
            near = _near(given, zones)
            raise _refusal(name, given, "an IANA time zone such as Europe/Paris", near=near)
        return given

    def url(self, name: str, *, schemes: Iterable[str], default: str | None = None) -> str:
        """Return a URL with one of `schemes`; no error repeats it, as it may hold a password."""
        if not self.has(name):
            return _required(name, default)
        scheme, separator, _ = self.text(name).partition("://")
        allowed = list(schemes)
        if not separator or scheme not in allowed:
            forms = ", ".join(f"{scheme}://" for scheme in allowed)
            raise ImproperlyConfigured(f"{name} is not a URL with one of the schemes {forms}.")
        try:
            _check_ports(self.text(name))
        except ValueError as error:
            raise ImproperlyConfigured(f"{name} is not a valid URL: {error}.") from None
        return self.text(name)

    def reader(self, rule: Rule) -> Callable[[str], Any] | None:
        """Return the reader for a setting's rule; None if it cannot be a variable."""
        match rule.kind:
            case Kind.SECONDS:
                return partial(self.seconds, minimum=rule.least, maximum=rule.most)
            case Kind.WHOLE:
                return partial(self.integer, minimum=int(rule.least), maximum=int(rule.most))
            case Kind.SWITCH:
                return self.boolean
            case Kind.WORDS | Kind.PAIRS | Kind.NETWORKS:
                return self.words
            case Kind.FOLDER:
                return lambda name: str(self.path(name))
            case Kind.TEXT | Kind.KEYS:
                return self.text
            case Kind.NAME:
                return None

    def section(self, prefix: str, readers: Mapping[str, Callable[[str], Any]]) -> dict[str, Any]:
        """Return {key: value} of the variables `prefix + key` that are set."""
        return {key: read(prefix + key) for key, read in readers.items() if self.has(prefix + key)}

    def refuse_unknown(self, prefix: str) -> None:
        """Refuse a variable with this prefix that no reader knows; suggest a similar one."""
        known = {name for name in self._known if name.startswith(prefix)}
        for name in sorted(self._variables):
            if name.startswith(prefix) and name not in known:
                raise ImproperlyConfigured(
                    f"{name} is not a known variable.{_near(name, known)}"
                    f" Known are: {', '.join(sorted(known))}."
                )


def _check_ports(text: str) -> None:
    """Raise ValueError if a port is none: of several Sentinels' URLs, or hosts of PostgreSQL."""
    for url in text.split(";"):
        parts = urlsplit(url)
        for host in parts.netloc.rpartition("@")[2].split(","):
            _ = parts._replace(netloc=host).port


def _required(name: str, default: T | None) -> T:
    if default is None:
        raise ImproperlyConfigured(f"{name} is required but not set.")
    return default


def _refusal(name: str, given: str, allowed: str, *, near: str = "") -> ImproperlyConfigured:
    return ImproperlyConfigured(f"{name} is {given!r}, but must be {allowed}.{near}")


def _near(given: str, known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(given, list(known), n=1)
    return f" Did you mean {matches[0]}?" if matches else ""
