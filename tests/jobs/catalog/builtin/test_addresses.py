"""Only ordinary public addresses may be reached."""

import pytest

from jobs.catalog.builtin.addresses import is_allowed, is_odd_address, why_not_public


@pytest.mark.parametrize(
    "address",
    [
        # Private, loopback, link-local, shared, and those of providers' metadata.
        *("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fec0::1"),
        *("0.0.0.0", "127.0.0.1", "127.255.255.254", "::", "::1"),
        *("169.254.169.254", "fe80::1", "fe80::1%eth0"),
        *("100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"),
        # Multicast, reserved, and of documentation and benchmarks.
        *("224.0.0.1", "255.255.255.255", "ff02::1"),
        *("198.18.0.1", "203.0.113.9", "100::1", "2001::1", "2001:db8::1"),
        # Inside an IPv6 address.
        *("::7f00:1", "::ffff:127.0.0.1", "::ffff:0:7f00:1"),
        *("64:ff9b::10.0.0.1", "64:ff9b:1::1", "2002:7f00:1::", "2002:808:808::"),
    ],
)
def test_special_addresses_are_refused(address: str) -> None:
    """Whatever is no ordinary public address, also when it hides inside an IPv6 address."""
    assert why_not_public(address)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "172.32.0.1", "192.0.1.1", "2606:4700::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"],
)
def test_public_addresses_are_not(address: str) -> None:
    """An IPv4 address inside an IPv6 one counts as what it is."""
    assert why_not_public(address) is None


@pytest.mark.parametrize(
    "host",
    ["2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1", "127.0.0.0x1", "1.2.3.4.5"],
)
def test_unusual_spellings_of_addresses_are_told(host: str) -> None:
    """Decimal, hexadecimal, octal and short forms, all of which a resolver reads."""
    assert is_odd_address(host)


@pytest.mark.parametrize(
    ("entry", "host", "port", "owner", "is_match"),
    [
        ("Device.Test", "device.test", 8443, None, True),
        ("device.test:8443", "device.test", 8443, None, True),
        ("device.test:443", "device.test", 8443, None, False),
        ("test", "device.test", 8443, None, False),
        ("evice.test", "device.test", 8443, None, False),
        (".test", "device.test", 8443, None, False),
        ("", "device.test", 8443, None, False),
        ("[::1]:80", "::1", 80, None, True),
        ("::1", "::1", 80, None, True),
        ("[::1]:80", "::1", 81, None, False),
        ("acme@device.test", "device.test", 8443, "acme", True),
        ("acme@device.test:8443", "device.test", 8443, "acme", True),
        ("acme@device.test:443", "device.test", 8443, "acme", False),
        ("acme@device.test", "device.test", 8443, "Acme", False),
        ("acme@device.test", "device.test", 8443, "other", False),
        ("acme@device.test", "device.test", 8443, None, False),
        ("@device.test", "device.test", 8443, "", False),
        ("@device.test", "device.test", 8443, None, False),
        ("device.test", "device.test", 8443, "acme", True),
    ],
)
def test_an_entry_allows_a_host(
    entry: str, host: str, port: int, owner: str | None, is_match: bool
) -> None:
    """As it is written, never by a part of its name; on all ports or on one; for all owners or
    for one.
    """
    assert is_allowed(host, port, allowed=[entry], owner=owner) is is_match
