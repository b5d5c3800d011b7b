"""An HTTP request, checked. Pure: no look-up, no connection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, quote, urlsplit

URL_LIMIT: Final = 8_192
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
# Headers that frame a message or name its receiver are set by us.
OWN_HEADERS: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade"}
    | {"expect", "keep-alive", "proxy-connection", "accept-encoding"}
)
_URL_SAFE: Final = "/%:@!$&'()*+,;=~-._"
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_HOST: Final = re.compile(r"[0-9a-z._:-]{1,253}")
_STATUS: Final = re.compile(r"[1-5](?:[0-9]{2}|xx)")


@dataclass(frozen=True, slots=True)
class Url:
    """A URL split into what a connection needs."""

    scheme: str
    host: str
    port: int
    path: str
    """Path and query, in ASCII."""

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        usual = {"http": 80, "https": 443}[self.scheme]
        host = self.bracketed_host
        return host if self.port == usual else f"{host}:{self.port}"

    @property
    def bracketed_host(self) -> str:
        """The host, an IPv6 address in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def shown(self) -> str:
        """Scheme, host and port, for error texts: paths and queries may hold secrets."""
        return f"{self.scheme}://{self.bracketed_host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Request:
    """A request ready to be sent."""

    method: str
    url: Url
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def __str__(self) -> str:
        return f"{self.method} {self.url.shown}"


def parsed_url(url: str) -> Url:
    """Return the parts of an http or https URL; raise ValueError with what is wrong."""
    if len(url) > URL_LIMIT:
        raise ValueError(f"is longer than {URL_LIMIT:,} characters")
    # Before urlsplit, which silently drops line breaks and tabs.
    if re.search(r"[\x00-\x20\x7f\\]", url):
        raise ValueError("contains a space, a control character or a backslash")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"is not a URL ({error})") from None
    if parts.scheme not in ("http", "https"):
        raise ValueError("starts with neither https:// nor http://")
    if "@" in parts.netloc:
        raise ValueError("contains a user name or password; use a header")
    host = _ascii_host(parts)
    if port is None:
        port = 443 if parts.scheme == "https" else 80
    path = quote(parts.path or "/", safe=_URL_SAFE)
    query = f"?{quote(parts.query, safe=_URL_SAFE + '?[]')}" if parts.query else ""
    return Url(scheme=parts.scheme, host=host, port=port, path=path + query)


def _ascii_host(parts: SplitResult) -> str:
    host = (parts.hostname or "").removesuffix(".")
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            raise ValueError("names a host that is no internet name") from None
    if not _HOST.fullmatch(host) or (":" in host) != ("[" in parts.netloc):
        raise ValueError("names no host, or one with forbidden characters")
    return host


def checked_header(name: str, value: str) -> None:
    """Raise ValueError for a header that would break out of its line, or that is set by us."""
    if not _TOKEN.fullmatch(name):
        raise ValueError("is not the name of a header")
    if name.lower() in OWN_HEADERS:
        raise ValueError("is a header that the request sets by itself")
    if not _HEADER_VALUE.fullmatch(value):
        raise ValueError("has a value with a line break or a character outside Latin-1")


def is_expected(status: int, expected: str) -> bool:
    """Return whether a status is in a list such as `2xx` or `200, 404`."""
    patterns = [pattern.strip() for pattern in expected.split(",")]
    return any(pattern in (str(status), f"{status // 100}xx") for pattern in patterns)


def checked_statuses(expected: str) -> str:
    """Return a list of statuses unchanged; raise ValueError if it is not one."""
    if not all(_STATUS.fullmatch(pattern.strip()) for pattern in expected.split(",")):
        raise ValueError("is a list of statuses such as 2xx or 200,404")
    return expected
