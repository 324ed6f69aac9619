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
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from openbell.desk.targets import Target, parse_target, require_public
from openbell.market.errors import OutboundFailed, OutboundRefused

if TYPE_CHECKING:
    import httpx2

__all__ = ["Answer", "Outbound", "OutboundFailed", "OutboundRefused", "system_addresses"]

LARGEST_HEAD = 32_768
"""Bytes of all header names and values of an answer. The HTTP library stops reading a head at 100 KiB."""
MOST_ADDRESSES = 4
"""How many addresses of a name are tried."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP response. The names of headers are in lower case; the body is as it was sent, never decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes


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
        self._given_tls = tls

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = {},
        body: bytes = b"",
        limit: int = 65_536,
        timeout: float = 10.0,  # noqa: ASYNC109 - bounds the whole request, including the resolution of the name
    ) -> Answer:
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
        self,
        target: Target,
        addresses: Sequence[str],
        request: tuple[str, Mapping[str, str], bytes],
        limit: int,
        connect: float,
    ) -> Answer:
        """Returns the answer of the first address that accepts a connection."""
        import httpx2

        method, headers, body = request
        # Ours come last: nobody else chooses the Host, the encoding or the life of the connection.
        own = {"Host": target.authority, "Accept-Encoding": "identity", "Connection": "close"}
        sent = {name.lower(): value for name, value in ({"User-Agent": "openbell"} | dict(headers) | own).items()}
        for last, address in ((address is addresses[-1], address) for address in addresses):
            literal = f"[{address}]" if ":" in address else address
            try:
                whole = httpx2.Request(
                    method,
                    f"{target.scheme}://{literal}:{target.port}{target.path}",
                    headers=sent,
                    content=body,
                    extensions={"sni_hostname": target.host, "timeout": {"connect": connect}},
                )
                return await self._send(whole, limit)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                if last:
                    raise OutboundFailed(f"no connection to the host ({_cause(error)})") from None
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
                raise OutboundFailed(f"the request failed ({_cause(error)})") from None
        raise AssertionError("unreachable: there is at least one address")

    async def _send(self, request: httpx2.Request, limit: int) -> Answer:
        """Send a request over a connection of its own and read at most `limit` bytes of the body."""
        import httpx2

        async with httpx2.AsyncHTTPTransport(verify=self._tls, trust_env=False) as transport:
            response = await transport.handle_async_request(request)
            try:
                return await _read(response, limit)
            finally:
                await response.aclose()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        import httpx2

        return self._given_tls or httpx2.create_ssl_context()


async def _read(response: httpx2.Response, limit: int) -> Answer:
    import httpx2

    status = response.status_code
    if sum(len(name) + len(value) for name, value in response.headers.raw) > LARGEST_HEAD:
        raise OutboundFailed(f"the headers of the answer have more than {LARGEST_HEAD} bytes", status=status)
    body = bytearray()
    try:
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > limit:
                raise OutboundFailed(f"the answer has more than {limit} bytes", status=status)
    except httpx2.HTTPError as error:
        raise OutboundFailed(f"the answer ended in its middle ({_cause(error)})", status=status) from None
    return Answer(status, dict(response.headers.items()), bytes(body))


def _cause(error: Exception) -> str:
    """The kind of a failure. The text of an error may hold an address or a header, so only TLS's own reason is kept."""
    cause = error
    while (inner := cause.__cause__ or cause.__context__) is not None and isinstance(inner, Exception):
        cause = inner
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"certificate: {cause.verify_message}"
    return type(error).__name__
