"""The HTTP client for threads. It closes its connections when they have been idle for long; httpx2 waits for a request."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from openbell.net.http import (
    HttpFailed,
    HttpFault,
    Received,
    RequestBounds,
    build_request,
    client_options,
    failure_of,
    lower,
    own_headers,
)
from openbell.net.response import Response

if TYPE_CHECKING:
    import httpx2


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
