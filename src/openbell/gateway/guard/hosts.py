"""Host, Origin and path: only requests that were meant for this gateway, from pages that it trusts, with one meaning.

A web page can let a name of its own resolve to 127.0.0.1 (DNS rebinding), but cannot change the Host and the Origin that the
browser sends. Both are compared with lists of exact values before anything else in a request is used. A path that
two programs could read in two ways is refused before it is routed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from openbell.desk.settings import Settings
from openbell.gateway.guard.headers import headers_of
from openbell.gateway.guard.refusals import Count, Form, GuardRefusal, plain_form, uncounted
from openbell.net.addresses import is_loopback

MOST_HEADER_BYTES = 16_384
MOST_HEADERS = 100
_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SHOWN = 100

_NO_HOST = GuardRefusal(400, "no_host", "The request has no Host header, or more than one.", close=True)
_TWO_ORIGINS = GuardRefusal(403, "origin_not_allowed", "The request has more than one Origin header.")
_TOO_MUCH = GuardRefusal(
    431,
    "headers_too_large",
    f"A request may have {MOST_HEADERS} headers of {MOST_HEADER_BYTES:,} bytes in all.",
    close=True,
)
_NO_CORS = GuardRefusal(
    405,
    "no_cors",
    "Pages of other origins cannot use this gateway: there is no CORS.",
    headers=((b"allow", b"GET, POST"),),
)
LONGEST_TARGET = 8192
"""Bytes of a path and its query."""
_AMBIGUOUS = re.compile(
    rb"""//                        # empty segments
    | /\.{1,2}(?:[/;]|$)           # dot segments
    | %(?:2e|2f|5c|25|[01][0-9a-f]|7f)   # encoded dots, slashes, backslashes, percent signs and control characters
    | %(?![0-9a-f]{2})             # incomplete encodings
    | [^!-~] | \\                  # anything but visible ASCII
    """,
    re.IGNORECASE | re.VERBOSE,
)
_TOO_LONG = GuardRefusal(414, "target_too_long", f"The path and the query may have {LONGEST_TARGET:,} bytes together.")
_NOT_A_PATH = GuardRefusal(400, "bad_target", "The request target must be a path, such as /mcp, not a whole address.")
_UNCLEAR = GuardRefusal(
    400, "bad_target", "The path must not have empty or dot segments, backslashes, control characters or %2F."
)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The accepted values of Host, in lower case, and of Origin."""

    hosts: frozenset[bytes]
    origins: frozenset[bytes]


def allowed_by(settings: Settings, port: int | None = None) -> Allowed:
    """Returns the accepted values. `port` is the one that was bound, if the setting is 0."""
    port = settings.port if port is None else port
    named = {each.lower() for each in settings.allowed_hosts.split(",") if each}
    hosts = {form for name in _own_names(settings.host) for form in _forms(name, port, "http")}
    origins = {f"http://{host}" for host in hosts} | {
        f"{scheme}://{host}" for scheme in _DEFAULT_PORTS for host in named
    }
    if settings.public_url:
        public = urlsplit(settings.public_url.lower())
        name = public.netloc.removesuffix(f":{public.port}")
        forms = _forms(name, public.port or _DEFAULT_PORTS[public.scheme], public.scheme)
        hosts |= forms
        origins |= {f"{public.scheme}://{host}" for host in forms}
    origins |= {each for each in settings.allowed_origins.split(",") if each}
    return Allowed(frozenset(each.encode() for each in hosts | named), frozenset(each.encode() for each in origins))


def _own_names(host: str) -> set[str]:
    """Returns the names by which a gateway that listens on `host` is reached."""
    try:
        address = ip_address(host)
    except ValueError:
        return {host.lower(), *_LOCAL} if is_loopback(host) else {host.lower()}
    own = f"[{address}]" if address.version == 6 else str(address)
    if address.is_unspecified:
        return set(_LOCAL)  # it is the address of every interface, and a name of none
    return {own, *_LOCAL} if address.is_loopback else {own}


def _forms(name: str, port: int, scheme: str) -> set[str]:
    """Returns the Host values of a name and a port: clients leave out the scheme's default port."""
    return {f"{name}:{port}", name} if port == _DEFAULT_PORTS[scheme] else {f"{name}:{port}"}


class Hosts:
    """Refuses foreign hosts (421), foreign origins (403), unclear paths, and too many headers."""

    def __init__(self, app: ASGIApp, allowed: Allowed, count: Count = uncounted, form: Form = plain_form) -> None:
        self._app = app
        self._count = count
        self._form = form
        self._hosts = allowed.hosts
        self._origins = allowed.origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "http":
            refusal = self.refusal(scope)
            if refusal is None:
                await self._app(scope, receive, send)
            else:
                self._count(refusal.reason)
                await refusal.send(send, self._form(scope, refusal))
        elif scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        else:
            # There are no WebSockets, which would need a check of Origin of their own.
            await send({"type": "websocket.close", "code": 1008})

    def refusal(self, scope: Scope) -> GuardRefusal | None:
        """Returns why a request is refused; None if it is not."""
        headers = headers_of(scope)
        hosts, origins = headers.all(b"host"), headers.all(b"origin")
        if len(hosts) != 1:
            return _NO_HOST
        if hosts[0].lower() not in self._hosts:
            return _foreign_host(hosts[0])
        if origins and (len(origins) > 1 or origins[0] not in self._origins):
            return _TWO_ORIGINS if len(origins) > 1 else _foreign_origin(origins[0])
        if headers.size > MOST_HEADER_BYTES or len(headers.pairs) > MOST_HEADERS:
            return _TOO_MUCH
        return target_refusal(scope) or (_NO_CORS if scope["method"] == "OPTIONS" else None)


def _foreign_host(value: bytes) -> GuardRefusal:
    return GuardRefusal(
        421,
        "host_not_allowed",
        f"This gateway is not reached as {_shown(value)}: if it should be, add that to OPENBELL_ALLOWED_HOSTS, or set "
        "OPENBELL_PUBLIC_URL to the address of the proxy.",
    )


def _foreign_origin(value: bytes) -> GuardRefusal:
    return GuardRefusal(
        403,
        "origin_not_allowed",
        f"Pages of the origin {_shown(value)} may not use this gateway: if they should, add it to OPENBELL_ALLOWED_ORIGINS.",
    )


def _shown(value: bytes) -> str:
    """Returns a header's value in quotes, bounded and in ASCII."""
    return json.dumps(value[:_SHOWN].decode("latin-1"))


def target_refusal(scope: Scope) -> GuardRefusal | None:
    """Returns why the path of a request is refused; None if it is not."""
    path: bytes = scope["raw_path"]
    if len(path) + len(scope["query_string"]) > LONGEST_TARGET:
        return _TOO_LONG
    if path[:1] != b"/":
        return _NOT_A_PATH
    return _UNCLEAR if _is_unclear(path) else None


@lru_cache(maxsize=64)  # clients use few paths
def _is_unclear(path: bytes) -> bool:
    return _AMBIGUOUS.search(path) is not None
