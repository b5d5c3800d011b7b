"""Typed readers of environment variables that refuse bad values.

An empty variable counts as not set. A refusal is an ImproperlyConfigured with the variable's name,
its value (never for secrets) and what is allowed.
"""

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from jobs.core.conf import Kind, Rule

SWITCH_WORDS = dict.fromkeys(("1", "true", "yes", "on"), True)
SWITCH_WORDS |= dict.fromkeys(("0", "false", "no", "off"), False)


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
        if default is None:
            raise ImproperlyConfigured(f"{name} is required but not set.")
        return default

    def setting(self, name: str, rule: Rule) -> Any:
        """Return a value of the rule's kind and within its limits, or the rule's default.

        Words have commas between them; `~` in a path stands for the home folder.
        """
        if not self.has(name):
            return rule.default
        given = self.text(name)
        try:
            value = _converted(given, rule.kind)
        except (ValueError, KeyError):
            value = None
        if rule.allows(value):
            return value
        is_switch = rule.kind is Kind.SWITCH
        raise _refusal(
            name, given, f"one of {', '.join(SWITCH_WORDS)}" if is_switch else rule.allowed
        )

    def boolean(self, name: str, *, default: bool) -> bool:
        """Return true for 1, true, yes, on and false for 0, false, no, off, in any case."""
        return bool(self.setting(name, Rule(default, Kind.SWITCH)))

    def words(self, name: str, *, default: Iterable[str] = ()) -> list[str]:
        """Return the comma-separated parts, trimmed, without empty ones."""
        return list(self.setting(name, Rule(default, Kind.WORDS)))

    def choice(self, name: str, *, allowed: Iterable[str], default: str, what: str = "") -> str:
        """Return the one of `allowed` that the variable names; case does not matter.

        `what` describes them, if they are too many to be named.
        """
        given = self.text(name, default=default)
        by_lower = {word.lower(): word for word in allowed}
        if given.lower() not in by_lower:
            near = _near(given, by_lower.values())
            raise _refusal(name, given, what or f"one of {', '.join(by_lower.values())}", near)
        return by_lower[given.lower()]

    def url(self, name: str, *, schemes: Iterable[str], default: str | None = None) -> str:
        """Return a URL with one of `schemes`; no error repeats it, as it may hold a password."""
        given = self.text(name, default=default)
        if not self.has(name):
            return given
        scheme, separator, _ = given.partition("://")
        allowed = list(schemes)
        if not separator or scheme not in allowed:
            forms = ", ".join(f"{scheme}://" for scheme in allowed)
            raise ImproperlyConfigured(f"{name} is not a URL with one of the schemes {forms}.")
        try:
            _check_ports(given)
        except ValueError as error:
            raise ImproperlyConfigured(f"{name} is not a valid URL: {error}.") from None
        return given

    def section(self, prefix: str, rules: Mapping[str, Rule]) -> dict[str, Any]:
        """Return {key: value} of the variables `prefix + key` that are set."""
        names = {key: prefix + key for key, rule in rules.items() if rule.kind is not Kind.NAME}
        return {
            key: self.setting(name, rules[key]) for key, name in names.items() if self.has(name)
        }

    def refuse_unknown(self, prefix: str) -> None:
        """Refuse a variable with this prefix that no reader knows; suggest a similar one."""
        known = {name for name in self._known if name.startswith(prefix)}
        for name in sorted(self._variables):
            if name.startswith(prefix) and name not in known:
                raise ImproperlyConfigured(
                    f"{name} is not a known variable.{_near(name, known)}"
                    f" Known are: {', '.join(sorted(known))}."
                )


def _converted(text: str, kind: Kind) -> Any:
    """Return the text as a value of the kind; raise ValueError or KeyError if it is none."""
    match kind:
        case Kind.SECONDS:
            return float(text)
        case Kind.WHOLE:
            return int(text)
        case Kind.SWITCH:
            return SWITCH_WORDS[text.lower()]
        case Kind.WORDS | Kind.PAIRS | Kind.NETWORKS:
            return [word for part in text.split(",") if (word := part.strip())]
        case Kind.FOLDER:
            return str(Path(text).expanduser())
    return text


def _check_ports(text: str) -> None:
    """Raise ValueError if a port is none: of several Sentinels' URLs, or hosts of PostgreSQL."""
    for url in text.split(";"):
        parts = urlsplit(url)
        for host in parts.netloc.rpartition("@")[2].split(","):
            _ = parts._replace(netloc=host).port


def _refusal(name: str, given: str, allowed: str, near: str = "") -> ImproperlyConfigured:
    return ImproperlyConfigured(f"{name} is {given!r}, but must be {allowed}.{near}")


def _near(given: str, known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(given, list(known), n=1)
    return f" Did you mean {matches[0]}?" if matches else ""
