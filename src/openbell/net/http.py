"""The HTTP client of all rooms: bounds on time and size whatever the other side sends, and no redirects.

What differs between vendors is an argument. Retries, the rate of requests, and which URLs are allowed belong to the callers.
The client for threads closes its connections when they have been idle for long; httpx2 waits for a request.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from openbell.net.addresses import is_loopback
from openbell.net.response import Response

if TYPE_CHECKING:
    import httpx2

LARGEST_HEAD = 32_768
"""Bytes of all header names and values of a response. The HTTP library stops reading a head at 100 KiB."""


@dataclass(frozen=True, slots=True)
class RequestBounds:
    """What a request may take. Times are seconds."""

    whole: float | None = 10.0
    """Of the whole exchange; None if the caller bounds it."""
    part: float | None = None
    """Without a byte from the other side; None: as long as the whole."""
    connect: float = 3.0
    largest: int = 2**20
    """Bytes of the body of a response."""
    connections: int = 8
    idle: float = 10.0
    """Until an unused connection is closed."""


class HttpFault(Enum):
    """Why there is no whole response."""

    UNREACHABLE = "no connection could be made"
    LATE = "it took longer than allowed"
    CUT = "the connection ended before the response was complete"
    LARGE_HEAD = "the head is larger than allowed"
    LARGE_BODY = "the body is larger than allowed"
    INVALID = "the URL or a header cannot be sent"
    CLOSED = "the client was closed"
    OTHER = "the request failed"


class HttpFailed(Exception):
    """There is no whole response within the bounds. The text is the class of the cause, whose own text may hold secrets."""

    def __init__(self, fault: HttpFault, name: str, *, sent: bool = True, status: int | None = None) -> None:
        super().__init__(name)
        self.fault = fault
        self.sent = sent
        """False if no part of the request has left this machine."""
        self.status = status
        """The status of the response, if that had arrived."""


class HttpClient:
    """Sends requests and keeps connections between them, for each event loop: the command line runs one for each call."""

    def __init__(
        self,
        url: str = "",
        headers: Mapping[str, str] | None = None,
        bounds: RequestBounds | None = None,
        *,
        decode: bool = False,
        proxies: bool = True,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`headers` are sent with each request. Proxies of the environment are used unless `url` is on this machine.

        With `decode`, compressed bodies are accepted; `bounds` count decoded bytes then.
        """
        self.url = url.rstrip("/")
        self.host = urlsplit(url).hostname or ""
        self.bounds = bounds or RequestBounds()
        self._headers = own_headers(headers, decode=decode)
        self._decode = decode
        self._proxies = proxies and not is_loopback(self.host)
        self._given_tls = tls
        self._shared: _LoopClient | None = None

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Any = None,
        body: bytes | None = None,
        bounds: RequestBounds | None = None,
        server_name: str = "",
    ) -> Response:
        """Returns the response if all of it arrives within the bounds. Raises `HttpFailed`.

        `url` is a whole URL, or a path behind the client's. `server_name` is the name for TLS, if the URL has an address.
        """
        import httpx2

        bounds = bounds or self.bounds
        status = None
        try:
            request = build_request(
                method, self._whole(url), self._headers | lower(headers), bounds, params, body, server_name
            )
            async with asyncio.timeout(bounds.whole), self._client() as client:
                response = await client.client.send(request, stream=True)
                status = response.status_code
                try:
                    received = Received(response, bounds.largest)
                    async for part in response.aiter_bytes() if self._decode else response.aiter_raw():
                        received.add(part)
                    return received.whole()
                finally:
                    await response.aclose()
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise failure_of(error, status) from None

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits while `bounds.connections` callers have their turn, so that nothing is sent later than it was allowed."""
        async with self._client() as client, client.gate:
            yield

    async def close(self) -> None:
        """Close all connections now; the next request opens new ones."""
        shared, self._shared = self._shared, None
        if shared and shared.open and shared.loop is asyncio.get_running_loop():
            shared.closer.cancel()
            await asyncio.wait([shared.closer])

    def _whole(self, url: str) -> str:
        return url if "://" in url else self.url + url

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[_LoopClient]:
        shared = self._shared
        if shared is None or not shared.open or shared.loop is not asyncio.get_running_loop():
            shared = self._shared = _LoopClient(self._make(), self.bounds)
        shared.users += 1
        try:
            yield shared
        finally:
            shared.users -= 1
            shared.used.set()

    def _make(self) -> httpx2.AsyncClient:
        import httpx2

        return httpx2.AsyncClient(**client_options(self.url, self.bounds, self._given_tls), trust_env=self._proxies)


class _LoopClient:
    """The client of one event loop, and the task that closes it when it is idle or when the task is cancelled."""

    def __init__(self, client: httpx2.AsyncClient, bounds: RequestBounds) -> None:
        self.loop = asyncio.get_running_loop()
        self.client = client
        self.gate = asyncio.Semaphore(bounds.connections)
        self.users = 0
        self.open = True
        self.used = asyncio.Event()
        self.closer = asyncio.create_task(self._close_when_idle(bounds.idle), name="http: close the idle client")

    async def _close_when_idle(self, idle: float) -> None:
        try:
            while self.open:
                self.used.clear()
                try:
                    async with asyncio.timeout(idle):
                        await self.used.wait()
                except TimeoutError:
                    # Set before the next await, so that no caller gets a client that is closing.
                    self.open = self.users > 0
        finally:
            await self.client.aclose()


class Received:
    """The body of a response while it arrives."""

    def __init__(self, response: httpx2.Response, largest: int) -> None:
        """Raises `HttpFailed` if the head is too large, or announces a body that is."""
        self._response = response
        self._largest = largest
        self._parts: list[bytes] = []
        self._size = 0
        if sum(len(name) + len(value) for name, value in response.headers.raw) > LARGEST_HEAD:
            raise HttpFailed(HttpFault.LARGE_HEAD, "a large head", status=response.status_code)
        declared = response.headers.get("content-length", "")
        if declared.isdigit() and (len(declared) > len(str(largest)) or int(declared) > largest):
            self._refuse()

    def add(self, part: bytes) -> None:
        """Add what has arrived. Raises `HttpFailed` if that is too much."""
        self._size += len(part)
        if self._size > self._largest:
            self._refuse()
        self._parts.append(part)

    def whole(self) -> Response:
        """Returns the response."""
        headers = {name.lower(): value for name, value in self._response.headers.items()}
        return Response(self._response.status_code, headers, b"".join(self._parts))

    def _refuse(self) -> None:
        raise HttpFailed(HttpFault.LARGE_BODY, f"more than {self._largest:,} bytes", status=self._response.status_code)


def own_headers(headers: Mapping[str, str] | None, *, decode: bool) -> dict[str, str]:
    """Returns the headers of each request of a client."""
    own = {"user-agent": "openbell", "accept": "*/*", "accept-encoding": "gzip, deflate" if decode else "identity"}
    return own | lower(headers)


def lower(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Returns headers with names in lower case, so that each is sent once."""
    return {name.lower(): value for name, value in (headers or {}).items()}


def build_request(
    method: str,
    url: str,
    headers: Mapping[str, str],
    bounds: RequestBounds,
    params: Any = None,
    body: bytes | None = None,
    server_name: str = "",
) -> httpx2.Request:
    """Returns a request that has these headers only, and the bounds of its parts."""
    import httpx2

    part = bounds.whole if bounds.part is None else bounds.part
    connect = bounds.connect if part is None else min(bounds.connect, part)
    times = {"connect": connect, "read": part, "write": part, "pool": part}
    extensions: dict[str, Any] = {"timeout": times} | ({"sni_hostname": server_name} if server_name else {})
    return httpx2.Request(method, url, params=params, headers=dict(headers), content=body, extensions=extensions)


def client_options(url: str, bounds: RequestBounds, tls: ssl.SSLContext | None = None) -> dict[str, Any]:
    """Returns the options of the library's client for requests to a URL."""
    import httpx2

    needs_tls = not url.startswith("http:")
    return {
        "follow_redirects": False,
        "limits": httpx2.Limits(
            max_connections=bounds.connections,
            max_keepalive_connections=bounds.connections,
            keepalive_expiry=bounds.idle,
        ),
        "verify": tls or (authorities() if needs_tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)),
    }


def failure_of(error: Exception, status: int | None = None) -> HttpFailed:
    """Returns the failure of a request for an error of the library."""
    import httpx2

    faults = {
        HttpFault.LATE: (TimeoutError, httpx2.TimeoutException),
        HttpFault.UNREACHABLE: (httpx2.ConnectError, httpx2.ProxyError),
        HttpFault.CUT: (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError),
        HttpFault.INVALID: (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, ValueError),
    }
    fault = next((fault for fault, kinds in faults.items() if isinstance(error, kinds)), HttpFault.OTHER)
    # Every other failure may come after a part of the request has left.
    before = (httpx2.ConnectError, httpx2.ProxyError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
    unsendable = (httpx2.InvalidURL, httpx2.UnsupportedProtocol)
    return HttpFailed(fault, type(error).__name__, sent=not isinstance(error, before + unsendable), status=status)


@cache
def authorities() -> ssl.SSLContext:
    """Returns the settings for https of all clients. Loading the certificates takes 20 ms."""
    import httpx2

    return httpx2.create_ssl_context()


class BlockingClient:
    """Sends requests to one address, and keeps connections between them. Any thread may use it."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None, bounds: RequestBounds | None = None) -> None:
        self.url = url.rstrip("/")
        self.bounds = bounds or RequestBounds()
        self._headers = own_headers(headers, decode=False)
        self._lock = threading.Lock()
        self._client: httpx2.Client | None = None
        self._running = 0
        """Requests without an answer yet."""
        self._used = 0.0
        """When the last request ended."""
        self._timer: threading.Timer | None = None
        self._closed = False

    def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Any = None,
        body: bytes | None = None,
        bounds: RequestBounds | None = None,
    ) -> Response:
        """Returns the response if all of it arrives within the bounds. Raises `HttpFailed`."""
        import httpx2

        bounds = bounds or self.bounds
        ends = None if bounds.whole is None else time.monotonic() + bounds.whole
        status = None
        try:
            request = build_request(method, self.url + path, self._headers | lower(headers), bounds, params, body)
            with self._running_client() as client:
                response = client.send(request, stream=True)
                status = response.status_code
                try:
                    received = Received(response, bounds.largest)
                    for part in response.iter_raw():
                        if ends is not None and time.monotonic() > ends:
                            raise TimeoutError
                        received.add(part)
                    return received.whole()
                finally:
                    response.close()
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise failure_of(error, status) from None

    def close(self) -> None:
        """Close every connection, for good."""
        with self._lock:
            self._closed = True
            client, self._client = self._client, None
            if self._timer is not None:
                self._timer.cancel()
        if client is not None:
            client.close()

    @contextmanager
    def _running_client(self) -> Iterator[httpx2.Client]:
        import httpx2

        with self._lock:
            if self._closed:
                raise HttpFailed(HttpFault.CLOSED, "closed", sent=False)
            if self._client is None:
                self._client = httpx2.Client(**client_options(self.url, self.bounds))
            client = self._client
            self._running += 1
        try:
            yield client
        finally:
            with self._lock:
                self._running -= 1
                self._used = time.monotonic()
                if self._timer is None and not self._closed:
                    self._wait(self.bounds.idle)

    def _wait(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._close_idle)
        self._timer.daemon = True
        self._timer.start()

    def _close_idle(self) -> None:
        with self._lock:
            self._timer = None
            if self._closed or self._client is None:
                return
            left = self.bounds.idle if self._running else self._used + self.bounds.idle - time.monotonic()
            if left > 0:
                self._wait(left)
                return
            client, self._client = self._client, None
        client.close()
