"""The address of a request's client, and whether the client is on this machine."""

from __future__ import annotations

from starlette.types import Scope

from openbell.gateway.guard.headers import headers_of
from openbell.net.addresses import is_loopback

_BY_PROXIES = frozenset({b"forwarded", b"via", b"x-real-ip"})
_FORWARDED = b"x-forwarded-"
_OWN_SITES = frozenset({b"same-origin", b"none"})
"""A page of the gateway, or an address that the user has typed."""


def address_of(scope: Scope) -> str:
    """Returns the client's address. uvicorn has replaced a trusted proxy's by the one that the proxy names."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def is_from_other_page(scope: Scope) -> bool:
    """Returns True if a browser has sent the request for a page of another origin than the gateway's own.

    Browsers send Origin with every POST, and Sec-Fetch-Site with everything, such as pictures in a page.
    """
    headers = headers_of(scope)
    origins, sites = headers.all(b"origin"), headers.all(b"sec-fetch-site")
    own = b"http://" + (headers.first(b"host") or b"").lower()
    return any(each.lower() != own for each in origins) or any(each not in _OWN_SITES for each in sites)


def is_local(scope: Scope) -> bool:
    """Returns True if a client on this machine has sent the request to a name of this machine, through no proxy.

    Every request comes from this machine if a proxy on it passes them on, and a proxy may leave out its headers: then the
    Host is the public one.
    """
    if not is_loopback(address_of(scope)):
        return False
    host = ""
    for name, value in scope["headers"]:
        if name in _BY_PROXIES or name.startswith(_FORWARDED):
            return False
        if name == b"host":
            host = value.decode("latin-1")
    bare = host[1 : host.index("]")] if host.startswith("[") and "]" in host else host.partition(":")[0]
    return is_loopback(bare)
