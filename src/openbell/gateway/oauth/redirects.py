"""Redirect URIs: which a client may have, and which of them a request may use."""

from __future__ import annotations

import re
from urllib.parse import urlencode, urlsplit

LONGEST = 2048
_CHARACTERS = re.compile(r"[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]+")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")
_LOOPBACK = re.compile(r"(http://(?:127\.0\.0\.1|\[::1\]|localhost))(?::\d{1,5})?((?:[/?].*)?)")


def fault_of(uri: str) -> str:
    """Returns why a client may not have a redirect URI; empty if it may."""
    if len(uri) > LONGEST:
        return f"it is longer than {LONGEST} characters"
    if "#" in uri:
        return "it has a fragment"
    if not _CHARACTERS.fullmatch(uri):
        return "it has characters that a URI cannot have; write other letters of a host in punycode"
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "it is not a URI"
    if "@" in parts.netloc:
        return "it has a user name"
    if parts.scheme not in {"http", "https"} or not host or port == 0 or parts.netloc.endswith(":"):
        return "it must be https://HOST/PATH, or http://127.0.0.1:PORT/PATH on the user's machine"
    if is_loopback(uri):
        return ""
    if parts.scheme != "https":
        return "it must be https, or http on 127.0.0.1, [::1] or localhost"
    return "" if _HOST.fullmatch(host) else "its host is not a name"


def is_loopback(uri: str) -> bool:
    """Returns True if a redirect leads to a program on the user's machine."""
    return _LOOPBACK.fullmatch(uri) is not None


def matches(registered: str, wanted: str) -> bool:
    """Returns True if a request may use a URI: the registered one, character for character.

    Only the port of a loopback URI may differ, because a program on the user's machine takes any free port (RFC 8252).
    """
    if registered == wanted:
        return True
    ours, theirs = _LOOPBACK.fullmatch(registered), _LOOPBACK.fullmatch(wanted)
    return ours is not None and theirs is not None and not fault_of(wanted) and ours.groups() == theirs.groups()


def host_of(uri: str) -> str:
    """Returns host and port of a redirect URI, in lower case; letters of other alphabets are in punycode."""
    return urlsplit(uri).netloc.lower()


def origin_of(uri: str) -> str:
    """Returns the source of a redirect URI for a content security policy, which has no form for IPv6 addresses."""
    return "http:" if "[" in host_of(uri) else f"{urlsplit(uri).scheme}://{host_of(uri)}"


def with_parameters(uri: str, **parameters: str | None) -> str:
    """Returns a redirect URI with parameters added to its query; those that are None are left out."""
    added = urlencode({name: value for name, value in parameters.items() if value is not None})
    return f"{uri}{'&' if '?' in uri else '?'}{added}"
