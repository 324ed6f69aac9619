"""A quotes API over HTTP: no redirects, and bounds on time and size whatever the other side sends."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from openbell.desk.arche.errors import UpstreamTooLarge, UpstreamUnreachable
from openbell.desk.arche.port import ArcheResponse
from openbell.desk.arche.requests import Params
from openbell.desk.settings_checks import is_loopback

if TYPE_CHECKING:
    import httpx2

_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
Sign = Callable[[str], Mapping[str, str]]
"""Returns headers that prove who sends the request with an id."""
LARGEST = 2**20
"""Bytes of a body. A page of 200 bars has about 45,000."""


class HttpUpstream:
    """Implements `port.Upstream` with an HTTP client."""

    def __init__(
        self, url: str, key: str = "", *, connect: float = 3.0, answer: float = 8.0, sign: Sign | None = None
    ) -> None:
        """`connect` and `answer` are seconds, `answer` those of the whole exchange. `sign` returns headers of a request."""
        self._sign = sign
        self.url = url.rstrip("/")
        self._key = key
        self._connect = connect
        self._answer = answer

    @cached_property
    def _client(self) -> httpx2.AsyncClient:
        import httpx2

        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "openbell"}
        return httpx2.AsyncClient(
            headers=headers | ({"X-Api-Key": self._key} if self._key else {}),
            verify=_tls() if self.url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            # No proxy stands between two programs of this machine.
            trust_env=not is_loopback(urlsplit(self.url).hostname or ""),
            follow_redirects=False,
            timeout=httpx2.Timeout(self._answer, connect=self._connect),
            limits=httpx2.Limits(max_connections=8, max_keepalive_connections=4, keepalive_expiry=10.0),
        )

    async def get(self, path: str, params: Params, request_id: str) -> ArcheResponse:
        """See the port."""
        import httpx2

        signature = {} if self._sign is None else self._sign(request_id)
        try:
            async with asyncio.timeout(self._answer):
                request = self._client.build_request(
                    "GET", self.url + path, params=list(params), headers={"X-Request-ID": request_id, **signature}
                )
                response = await self._client.send(request, stream=True)
                try:
                    body = await _read(response)
                finally:
                    await response.aclose()
        except (TimeoutError, httpx2.TimeoutException):
            raise UpstreamUnreachable(f"{self.url} did not answer in {self._answer:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise UpstreamUnreachable(f"{self.url}: {_cause(error)}") from None
        headers = {name.lower(): value for name, value in response.headers.items()}
        theirs = headers.get("x-request-id", "")
        if not _ID.fullmatch(theirs) or (self._key and self._key in theirs):
            headers["x-request-id"] = request_id
        return ArcheResponse(response.status_code, headers, body)

    async def close(self) -> None:
        """Close every connection."""
        if "_client" in self.__dict__:
            await self._client.aclose()


async def _read(response: httpx2.Response) -> bytes:
    """Returns the body as it was sent. Raises `UpstreamTooLarge` as soon as that is known."""
    declared = response.headers.get("content-length", "")
    parts, size = [], int(declared) if declared.isdigit() and len(declared) < 19 else 0
    if size <= LARGEST:
        size = 0
        async for part in response.aiter_raw():
            parts.append(part)
            size += len(part)
            if size > LARGEST:
                break
    if size > LARGEST:
        raise UpstreamTooLarge(f"the response has more than {LARGEST:,} bytes", response.status_code)
    return b"".join(parts)


def _cause(error: Exception) -> str:
    """Returns what went wrong without texts that the other side can choose, and without the request's headers."""
    import httpx2

    if isinstance(error, httpx2.ConnectError):
        return "the connection was refused or could not be made"
    if isinstance(error, httpx2.RemoteProtocolError | httpx2.ReadError):
        return "the connection ended before the response was complete"
    return f"the request failed ({type(error).__name__})"


@cache
def _tls() -> ssl.SSLContext:
    from httpx2 import create_ssl_context

    return create_ssl_context()
