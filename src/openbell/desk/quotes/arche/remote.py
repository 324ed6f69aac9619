"""A quotes API over HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from openbell.desk.quotes.arche.errors import UpstreamTooLarge, UpstreamUnreachable
from openbell.desk.quotes.arche.port import ArcheResponse
from openbell.desk.quotes.arche.requests import Params
from openbell.market.errors import OpenbellError
from openbell.net.http import HttpClient, HttpFailed, HttpFault, RequestBounds

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
        self._key = key
        headers = {"Accept": "application/json"} | ({"X-Api-Key": key} if key else {})
        self._http = HttpClient(url, headers, RequestBounds(answer, connect=connect, largest=LARGEST))
        self.url = self._http.url

    async def get(self, path: str, params: Params, request_id: str) -> ArcheResponse:
        """See the port."""
        signature = {} if self._sign is None else self._sign(request_id)
        try:
            response = await self._http.send(
                "GET", path, params=list(params), headers={"X-Request-ID": request_id, **signature}
            )
        except HttpFailed as error:
            raise self._failure(error) from None
        headers = dict(response.headers)
        theirs = headers.get("x-request-id", "")
        if not _ID.fullmatch(theirs) or (self._key and self._key in theirs):
            headers["x-request-id"] = request_id
        return ArcheResponse(response.status, headers, response.body)

    def _failure(self, error: HttpFailed) -> OpenbellError:
        """Returns the error without texts that the other side can choose, and without the request's headers."""
        if error.fault is HttpFault.LARGE_BODY and error.status is not None:
            return UpstreamTooLarge(f"the response has more than {LARGEST:,} bytes", error.status)
        if error.fault is HttpFault.LATE:
            return UpstreamUnreachable(f"{self.url} did not answer in {self._http.bounds.whole:g} s")
        causes = {
            HttpFault.UNREACHABLE: "the connection was refused or could not be made",
            HttpFault.CUT: "the connection ended before the response was complete",
        }
        return UpstreamUnreachable(f"{self.url}: {causes.get(error.fault, f'the request failed ({error})')}")

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()
