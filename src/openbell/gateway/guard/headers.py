"""Request headers by name, read in one pass for all checks; and the client's address, if it is on this machine."""

from __future__ import annotations

from itertools import chain

from starlette.types import Scope

from openbell.net.addresses import is_loopback

_KEY = "openbell.headers"
_BY_PROXIES = frozenset({b"forwarded", b"via", b"x-real-ip"})
_FORWARDED = b"x-forwarded-"
_OWN_SITES = frozenset({b"same-origin", b"none"})
"""A page of the gateway, or an address that the user has typed."""


class RequestHeaders:
    """The headers of one request. Names are in lower case."""

    __slots__ = ("_first", "has_repeats", "pairs")

    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        self.pairs = pairs
        """All headers in their order."""
        self._first = dict(pairs)
        self.has_repeats = len(self._first) != len(pairs)
        """True if a name is given more than once."""
        if self.has_repeats:
            self._first = dict(reversed(pairs))

    def __contains__(self, name: bytes) -> bool:
        return name in self._first

    def first(self, name: bytes) -> bytes | None:
        """Returns the first value of a name without white space around it; None if there is none."""
        found = self._first.get(name)
        return None if found is None else found.strip()

    def text(self, name: bytes) -> str | None:
        """Returns the first value of a name as text; None if there is none."""
        found = self._first.get(name)
        return None if found is None else found.strip().decode("latin-1")

    def all(self, name: bytes) -> list[bytes]:
        """Returns the values of a name as they were sent."""
        if self.has_repeats:
            return [value for each, value in self.pairs if each == name]
        found = self._first.get(name)
        return [] if found is None else [found]

    @property
    def size(self) -> int:
        """The bytes of all names and values."""
        return len(b"".join(chain.from_iterable(self.pairs)))


def headers_of(scope: Scope) -> RequestHeaders:
    """Returns the headers of a request. The first call reads them, and later ones return the same value."""
    found: RequestHeaders | None = scope.get(_KEY)
    if found is None or found.pairs is not scope["headers"]:
        found = scope[_KEY] = RequestHeaders(scope["headers"])
    return found


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
