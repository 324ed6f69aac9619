"""Whom an address reaches: only this machine, or the public internet."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from openbell.market.errors import OutboundRefused

# IANA's registries of special-purpose addresses: all blocks that are not, or not always, reachable as public unicast.
_NOT_PUBLIC_4 = tuple(
    IPv4Network(block)
    for block in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
        *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
)
_UNICAST_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    IPv6Network(block)
    # The first block holds Teredo, benchmarking and ORCHID; 2002::/16 is 6to4, 3ffe::/16 was the 6bone.
    for block in ("2001::/23", "2001:db8::/32", "2002::/16", "3ffe::/16", "3fff::/20")
)
_NAT64 = IPv6Network("64:ff9b::/96")


def is_loopback(host: str) -> bool:
    """Returns True for localhost and for addresses that only this machine can reach."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_public(address: str) -> bool:
    """Returns True if an address is a public unicast address; IPv4 addresses inside IPv6 are judged as IPv4."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address):
        if parsed.scope_id is not None:
            return False
        inner = IPv4Address(parsed.packed[-4:]) if parsed in _NAT64 else parsed.ipv4_mapped
        if inner is None:
            return parsed in _UNICAST_6 and not any(parsed in block for block in _NOT_PUBLIC_6)
        parsed = inner
    return not any(parsed in block for block in _NOT_PUBLIC_4)


def require_public(*addresses: str) -> None:
    """Raise `OutboundRefused` unless all addresses are public."""
    if not all(map(is_public, addresses)):
        raise OutboundRefused(
            "the host has an address that is not public: requests to private networks are not allowed"
        )
