"""Only ordinary public addresses may be reached."""

import pytest

from jobs.catalog.builtin.addresses import is_allowed, is_odd_address, why_not_public


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.168.1.1",
        "198.18.0.1",
        "203.0.113.9",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:0:7f00:1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:808:808::",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
    ],
)
def test_special_addresses_are_refused(address: str) -> None:
    """Private, loopback, link-local, shared, metadata, multicast, reserved, also when they hide
    inside an IPv6 address.
    """
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
    ("entry", "is_match"),
    [
        ("Device.Test", True),
        ("device.test:8443", True),
        ("device.test:443", False),
        ("test", False),
        ("evice.test", False),
        (".test", False),
        ("", False),
    ],
)
def test_an_entry_allows_a_host_on_all_ports_or_on_one(entry: str, is_match: bool) -> None:
    """A host is allowed as it is written, never by a part of its name."""
    assert is_allowed("device.test", 8443, allowed=[entry]) is is_match


def test_entries_for_ipv6_may_have_a_port() -> None:
    """In brackets, as in a URL."""
    assert is_allowed("::1", 80, allowed=["[::1]:80"])
    assert is_allowed("::1", 80, allowed=["::1"])
    assert not is_allowed("::1", 81, allowed=["[::1]:80"])


@pytest.mark.parametrize(
    ("entry", "owner", "is_match"),
    [
        ("acme@device.test", "acme", True),
        ("acme@device.test:8443", "acme", True),
        ("acme@device.test:443", "acme", False),
        ("acme@device.test", "Acme", False),
        ("acme@device.test", "other", False),
        ("acme@device.test", None, False),
        ("@device.test", "", False),
        ("@device.test", None, False),
        ("device.test", "acme", True),
    ],
)
def test_an_entry_may_be_for_one_owner(entry: str, owner: str | None, is_match: bool) -> None:
    """An inner host of one owner is not opened for all the others."""
    assert is_allowed("device.test", 8443, allowed=[entry], owner=owner) is is_match
