"""Addresses and URLs: whom an address reaches, and which URLs that others have chosen the desk may send requests to.

The form of such a URL is a strict subset of RFC 3986 that leaves two parsers nothing to read differently: printable ASCII,
no user information, no fragment, and a host that is a name, four decimal numbers or an IPv6 address in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from openbell.market.errors import InvalidParameter, OutboundRefused

LONGEST_URL = 2_048
_DEFAULT_PORTS = {"https": 443, "http": 80}
_FIRST_FREE_PORT = 1_024
"""Ports below belong to other services of a machine (mail, SSH, databases of names), except 443."""

_URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(?:[/?][A-Za-z0-9\-._~!$&'()*+,;=:@%/?]*)?)",
    re.IGNORECASE | re.ASCII,
)
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
"""A last label that a C library reads as a number: 127.1, 0x7f.1 and 2130706433 are all 127.0.0.1."""
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


@dataclass(frozen=True, slots=True)
class Target:
    """A URL whose form is allowed."""

    scheme: str
    host: str
    """In lower case; an IPv6 address without its brackets."""
    port: int
    path: str
    """With the query; begins with a slash."""
    trusted: bool
    """True if the operator has listed its origin: plain HTTP and addresses of private networks are allowed then."""

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """The URL without its path."""
        return f"{self.scheme}://{self.authority}"


def parse_target(url: str, trusted: Iterable[str] = ()) -> Target:
    """Returns the parts of a URL. Raises `OutboundRefused` if it may not be requested; the message never repeats it.

    `trusted` are origins in the form of `Target.origin`.
    """
    if len(url) > LONGEST_URL:
        raise OutboundRefused(f"the URL is longer than {LONGEST_URL} characters")
    parts = _URL.fullmatch(url)
    if parts is None:
        raise OutboundRefused(
            "the URL has another form than https://HOST[:PORT]/PATH: printable ASCII only, "
            "without user name, password and fragment; write other alphabets in punycode"
        )
    scheme, host = parts["scheme"].lower(), _host(parts["host"].lower())
    port = int(parts["port"] or _DEFAULT_PORTS[scheme])
    path = parts["path"] if parts["path"].startswith("/") else "/" + parts["path"]
    target = Target(scheme, host, port, path, trusted=False)
    if not 0 < port < 65_536:
        raise OutboundRefused(f"the URL has no valid port: {port}")
    if target.origin in trusted:
        return Target(scheme, host, port, path, trusted=True)
    if scheme != "https":
        raise OutboundRefused(
            "the URL must begin with https://; OPENBELL_WEBHOOK_ORIGINS allows others, at the desk that sends too"
        )
    if port != _DEFAULT_PORTS["https"] and port < _FIRST_FREE_PORT:
        raise OutboundRefused(f"port {port} is not allowed: use 443, or {_FIRST_FREE_PORT} and above")
    if ":" in host or _NUMBER.fullmatch(host.rpartition(".")[2]):
        require_public(host)
    return target


def parse_origin(text: str) -> str:
    """Returns an origin that the operator trusts in its normal form. Raises `InvalidParameter` if it is none."""
    parts = _URL.fullmatch(text)
    if parts is None or parts["path"] not in {"", "/"}:
        # The text is not repeated: it may hold a password.
        raise InvalidParameter("not an origin: write it as http://HOST:PORT, without user, password and path")
    try:
        host, scheme = _host(parts["host"].lower()), parts["scheme"].lower()
    except OutboundRefused as error:
        raise InvalidParameter(f"not an origin: {error.message}") from None
    return Target(scheme, host, int(parts["port"] or _DEFAULT_PORTS[scheme]), "/", trusted=True).origin


def _host(text: str) -> str:
    """Returns a host as it is resolved. Raises `OutboundRefused` if it is neither a name nor a whole address."""
    refused = OutboundRefused("the host of the URL is neither a name nor a complete IP address")
    labels = text.split(".")
    if text.startswith("[") or _NUMBER.fullmatch(labels[-1]):
        try:
            return str(ip_address(text.strip("[]")))
        except ValueError:
            raise refused from None
    if not all(map(_LABEL.fullmatch, labels)):
        raise refused
    return text


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
