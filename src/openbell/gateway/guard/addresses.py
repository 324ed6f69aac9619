"""The address of a request's client, and whether the client is on this machine."""

from __future__ import annotations

from starlette.types import Scope

from openbell.desk.settings_checks import is_loopback

_BY_PROXIES = frozenset({b"forwarded", b"via", b"x-real-ip"})
_FORWARDED = b"x-forwarded-"


def address_of(scope: Scope) -> str:
    """Returns the client's address. uvicorn has replaced a trusted proxy's by the one that the proxy names."""
    client = scope.get("client")
    return str(client[0]) if client else ""


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
