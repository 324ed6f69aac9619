"""HTTP to the vendor: no redirects, and bounds on time and size whatever the other side sends."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from openbell.desk.chart_image.errors import VendorFailed, VendorUnreachable
from openbell.desk.settings_checks import is_loopback

if TYPE_CHECKING:
    import httpx2


@dataclass(frozen=True, slots=True)
class Request:
    """A request, and the most bytes of a response to it."""

    method: str
    path: str
    largest: int
    accept: str = "application/json"
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """A whole response. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def kind(self) -> str:
        """The content type without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class VendorHttp:
    """Sends requests to one address. Connections are kept between requests."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None, *, connect: float = 3.0) -> None:
        """`headers` are sent with each request; `connect` is seconds."""
        self.url = url.rstrip("/")
        self.host = urlsplit(url).hostname or ""
        self._headers = dict(headers or {})
        self._connect = connect

    @cached_property
    def _client(self) -> httpx2.AsyncClient:
        import httpx2

        encrypted = self.url.startswith("https:")
        return httpx2.AsyncClient(
            follow_redirects=False,
            headers={"User-Agent": "openbell", "Accept-Encoding": "identity", **self._headers},
            limits=httpx2.Limits(max_connections=8, max_keepalive_connections=4, keepalive_expiry=10.0),
            trust_env=not is_loopback(self.host),
            verify=httpx2.create_ssl_context() if encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )

    async def send(self, request: Request, seconds: float) -> Response:
        """Returns the response if all of it arrives in time. Raises `VendorUnreachable` and `VendorFailed`."""
        import httpx2

        seconds = max(0.001, seconds)
        headers = {"Accept": request.accept}
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with asyncio.timeout(seconds):
                built = self._client.build_request(
                    request.method,
                    self.url + request.path,
                    content=request.body,
                    headers=headers,
                    timeout=httpx2.Timeout(seconds, connect=min(seconds, self._connect)),
                )
                response = await self._client.send(built, stream=True)
                try:
                    body = await self._read(response, request.largest)
                finally:
                    await response.aclose()
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            raise VendorUnreachable(f"{self.host} cannot be reached; try again later", sent=False) from None
        except (TimeoutError, httpx2.TimeoutException):
            raise VendorUnreachable(f"{self.host} did not answer in time; try again later") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            # The text of the error may contain what the other side has sent.
            raise VendorUnreachable(f"the connection to {self.host} failed ({type(error).__name__})") from None
        return Response(response.status_code, {name.lower(): text for name, text in response.headers.items()}, body)

    async def _read(self, response: httpx2.Response, largest: int) -> bytes:
        """Returns the body. Raises `VendorFailed` as soon as it is known to be larger than allowed."""
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise VendorFailed(f"{self.host} sent an encoded response", status=response.status_code)
        declared = response.headers.get("content-length", "")
        parts: list[bytes] = []
        size = 0
        if not (declared.isdigit() and (len(declared) > len(str(largest)) or int(declared) > largest)):
            async for part in response.aiter_raw():
                size += len(part)
                if size > largest:
                    break
                parts.append(part)
            else:
                return b"".join(parts)
        raise VendorFailed(f"{self.host} sent more than {largest:,} bytes", status=response.status_code)

    async def close(self) -> None:
        """Close every connection."""
        if "_client" in self.__dict__:
            await self._client.aclose()
