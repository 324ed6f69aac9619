"""HTTP requests to URLs that others have chosen (webhooks, client metadata): no private networks, no redirects, limits.

A name is resolved once, every address is judged, and the connection goes to a judged address: a name server that gives
another address the next time (DNS rebinding) has no effect. Each request has a connection of its own, no cookies, no
redirects, no proxy of the environment, and no decompression.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from openbell.market.errors import OutboundFailed, OutboundRefused
from openbell.net.addresses import Target, parse_target, require_public
from openbell.net.http import LARGEST_HEAD, HttpClient, HttpFailed, HttpFault, RequestBounds
from openbell.net.response import Response

__all__ = ["Outbound", "OutboundFailed", "OutboundRefused", "system_addresses"]

MOST_ADDRESSES = 4
"""How many addresses of a name are tried."""

_Sent = tuple[str, Mapping[str, str], bytes]
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def system_addresses(host: str, port: int) -> Sequence[str]:
    """Returns the addresses that this machine's resolver has for a name, each once."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Outbound:
    """Sends requests to URLs that others have chosen."""

    def __init__(
        self, *, trusted: Iterable[str] = (), resolve: Resolve = system_addresses, tls: ssl.SSLContext | None = None
    ) -> None:
        """`trusted` are origins (`http://127.0.0.1:9000`) for which plain HTTP and private addresses are allowed."""
        self._trusted = frozenset(trusted)
        self._resolve = resolve
        self._tls = tls

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = {},
        body: bytes = b"",
        limit: int = 65_536,
        timeout: float = 10.0,  # noqa: ASYNC109 - bounds the whole request, including the resolution of the name
    ) -> Response:
        """Send one request. `limit` is the largest body of the answer in bytes, `timeout` bounds everything in seconds.

        Raises `OutboundRefused` if the URL or one of its addresses is not allowed (nothing was sent), and
        `OutboundFailed` if no complete answer arrived within the limits. Messages never repeat the URL.
        """
        target = parse_target(url, self._trusted)
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._addresses(target)
                return await self._first(target, addresses, (method, headers, body), limit, timeout / len(addresses))
        except TimeoutError:
            raise OutboundFailed(f"no complete answer within {timeout:g} s") from None

    async def _addresses(self, target: Target) -> Sequence[str]:
        """Returns the addresses of the target. Raises `OutboundRefused` unless all of them are allowed."""
        try:
            found = await self._resolve(target.host, target.port)
        except (OSError, UnicodeError) as error:
            raise OutboundFailed(f"the name of the host cannot be resolved ({type(error).__name__})") from None
        if not found:
            raise OutboundFailed("the name of the host has no address")
        if not target.trusted:
            require_public(*found)
        return found[:MOST_ADDRESSES]

    async def _first(
        self, target: Target, addresses: Sequence[str], request: _Sent, limit: int, connect: float
    ) -> Response:
        """Returns the answer of the first address that accepts a connection."""
        method, headers, body = request
        # Ours come last: nobody else chooses the Host, the encoding or the life of the connection.
        own = {"Host": target.authority, "Accept-Encoding": "identity", "Connection": "close"}
        sent = {name.lower(): value for name, value in (dict(headers) | own).items()}
        bounds = RequestBounds(whole=None, connect=connect, largest=limit)
        for last, address in ((address is addresses[-1], address) for address in addresses):
            literal = f"[{address}]" if ":" in address else address
            client = HttpClient(
                f"{target.scheme}://{literal}:{target.port}", None, bounds, proxies=False, tls=self._tls
            )
            try:
                return await client.send(method, target.path, headers=sent, body=body, server_name=target.host)
            except HttpFailed as error:
                if error.sent or last:
                    raise _failure(error, limit) from None
            finally:
                await client.close()
        raise AssertionError("unreachable: there is at least one address")


def _failure(error: HttpFailed, limit: int) -> OutboundFailed:
    if error.fault is HttpFault.LARGE_HEAD:
        return OutboundFailed(f"the headers of the answer have more than {LARGEST_HEAD} bytes", status=error.status)
    if error.fault is HttpFault.LARGE_BODY:
        return OutboundFailed(f"the answer has more than {limit} bytes", status=error.status)
    if error.status is not None:
        return OutboundFailed(f"the answer ended in its middle ({_cause(error)})", status=error.status)
    if not error.sent:
        return OutboundFailed(f"no connection to the host ({_cause(error)})")
    return OutboundFailed(f"the request failed ({_cause(error)})")


def _cause(error: HttpFailed) -> str:
    """The kind of a failure. The text of an error may hold an address or a header, so only TLS's own reason is kept."""
    cause: Exception = error
    while (inner := cause.__cause__ or cause.__context__) is not None and isinstance(inner, Exception):
        cause = inner
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"certificate: {cause.verify_message}"
    return str(error)
