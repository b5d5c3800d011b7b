"""Which hosts an HTTP request may reach, by IANA's registries (RFC 6890 and later). Pure.

Python's `ipaddress` has such tables, too, but they differ from release to release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

SPECIAL: Final = tuple(
    (ip_network(network), kind)
    for network, kind in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by a carrier's NAT"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "a cloud's metadata service"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "for documentation"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "for benchmarks"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "for documentation"),
        ("2002::/16", "a 6to4 tunnel"),
        ("3fff::/20", "for documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("ff00::/8", "multicast"),
    )
)
GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
NAT64: Final = IPv6Network("64:ff9b::/96")
_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")


def why_not_public(address: str) -> str | None:
    """Return the kind of a special address, or None. IPv4 inside IPv6 counts as IPv4."""
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address):
        inner = parsed.ipv4_mapped
        if parsed in NAT64:
            inner = IPv4Address(int(parsed) & 0xFFFFFFFF)
        if inner is not None:
            return why_not_public(str(inner))
    for network, kind in SPECIAL:
        if parsed in network:
            return kind
    if isinstance(parsed, IPv6Address) and parsed not in GLOBAL_UNICAST:
        return "reserved"
    return None


def is_address(host: str) -> bool:
    """Return whether a host is an address, and not a name to be looked up."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_odd_address(host: str) -> bool:
    """Return whether resolvers read a host as IPv4 in an unusual spelling, such as `0x7f.1`."""
    last = host.rpartition(".")[2]
    if ":" in host or not _NUMBER.fullmatch(last):
        return False
    try:
        return str(IPv4Address(host)) != host
    except ValueError:
        return True


def is_allowed(host: str, port: int, *, allowed: Iterable[str], owner: str | None = None) -> bool:
    """Return whether a host is on the list; its entries are `host` or `host:port`.

    An entry `owner@host` or `owner@host:port` applies only to runs of that owner. An IPv6 address
    with a port is in brackets. Hosts are case-insensitive.
    """
    host = host.lower()
    bracketed = f"[{host}]" if ":" in host else host
    forms = {host, bracketed, f"{bracketed}:{port}"}
    for entry in allowed:
        of_owner, separator, listed = entry.strip().rpartition("@")
        if listed.lower() in forms and (not separator or (of_owner and of_owner == owner)):
            return True
    return False
