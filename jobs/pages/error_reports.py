"""What Django's error pages and mails show: no password of a URL, no secret setting, no key.

Django hides settings by their names. It shows `DATABASE_URL`, and every variable of each frame.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from types import FrameType
from typing import Any, Final
from urllib.parse import unquote

from django.conf import global_settings, settings
from django.template.defaultfilters import pprint
from django.utils.safestring import SafeString
from django.views.debug import ExceptionReporter, SafeExceptionReporterFilter

HIDDEN: Final = SafeExceptionReporterFilter.cleansed_substitute
SHORTEST: Final = 6
"""Fewest characters of a secret that is hidden wherever it stands: shorter ones are in any text."""
_PASSWORD: Final = re.compile(
    r"""([a-z][a-z0-9+.-]*://[^\s/?#:@'"<>&]*:)([^\s/?#'"<>]+)@""", re.IGNORECASE
)
_SECRET_NAMES: Final = re.compile("SECRET|PASSW|ENCRYPTION_KEYS$", re.IGNORECASE)
_MODULES_OF_KEYS: Final = ("jobs.core.cipher", "jobs.core.keyring")
_SETTINGS: Final = {
    "DEFAULT_EXCEPTION_REPORTER": f"{__name__}.Reporter",
    "DEFAULT_EXCEPTION_REPORTER_FILTER": f"{__name__}.ReporterFilter",
}


def hide_secrets_in_error_reports() -> None:
    """Use this module for error reports, unless the project has chosen another one."""
    for name, path in _SETTINGS.items():
        if getattr(settings, name) == getattr(global_settings, name):
            setattr(settings, name, path)


def without_secrets(text: str, secrets: Sequence[str]) -> str:
    """Return a text without the passwords of URLs and without these secrets, the longest first."""
    text = _without_passwords(text)
    for secret in secrets:
        for form in {secret, escape(secret), repr(secret)[1:-1]}:
            text = text.replace(form, HIDDEN)
    return text


def _without_passwords(text: str) -> str:
    return _PASSWORD.sub(rf"\1{HIDDEN}@", text)


class _Shown:
    """A variable in a report, as a text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


class ReporterFilter(SafeExceptionReporterFilter):
    """Django's filter, which also hides secrets in the values of settings and variables."""

    def cleanse_setting(self, key: Any, value: Any) -> Any:
        cleansed = super().cleanse_setting(key, value)
        # Lazy texts say that they are a str, and are none.
        return _without_passwords(str(cleansed)) if isinstance(cleansed, str) else cleansed

    def get_traceback_frame_variables(self, request: Any, tb_frame: FrameType) -> Any:
        found = dict(super().get_traceback_frame_variables(request, tb_frame))
        if tb_frame.f_globals.get("__name__") in _MODULES_OF_KEYS:
            return dict.fromkeys(found, HIDDEN).items()
        secrets = _secrets()
        return {name: self._shown(value, secrets) for name, value in found.items()}.items()

    def _shown(self, value: Any, secrets: Sequence[str]) -> Any:
        # Before Django cuts long values: a password could be cut, and be no match any more.
        text = pprint(value)
        hidden = without_secrets(text, secrets)
        return value if hidden == text else _Shown(hidden)


class Reporter(ExceptionReporter):
    """Django's reporter, which also hides secrets in the texts of exceptions."""

    def get_traceback_html(self) -> SafeString:
        return SafeString(without_secrets(super().get_traceback_html(), _secrets()))

    def get_traceback_text(self) -> SafeString:
        return SafeString(without_secrets(super().get_traceback_text(), _secrets()))


def _secrets() -> list[str]:
    """Return the secrets of the settings, the longest first."""
    found = {
        secret
        for name in dir(settings)
        if name.isupper()
        for secret in _secrets_of(name, getattr(settings, name))
    }
    return sorted((secret for secret in found if len(secret) >= SHORTEST), key=len, reverse=True)


def _secrets_of(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _secrets_of(str(key), inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _secrets_of(name, inner)
    elif isinstance(value, str):
        value = str(value)
        if _SECRET_NAMES.search(name):
            yield value
            # The parts of a key ring: ID:BASE64.
            yield from (part.partition(":")[2].strip() for part in value.split(","))
        for _, password in _PASSWORD.findall(value):
            yield from (password, unquote(password))
