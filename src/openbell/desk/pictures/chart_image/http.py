"""HTTP to the vendor of chart images, in its errors, and the rate of requests: below the plan's rate and burst."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from openbell.charts.config.choices import Plan
from openbell.desk.pictures.chart_image.errors import VendorError, VendorFailed, VendorUnreachable
from openbell.net.http import HttpClient, HttpFailed, HttpFault, RequestBounds
from openbell.net.rates import Bucket, Rate
from openbell.net.response import Response

_MARGIN = 0.9
"""The share of the plan's rate that is used: two clocks do not agree exactly."""


@dataclass(frozen=True, slots=True)
class VendorRequest:
    """A request, and the most bytes of a response to it."""

    method: str
    path: str
    largest: int
    accept: str = "application/json"
    body: bytes | None = None


class VendorHttp:
    """Sends requests to one address."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None, *, connect: float = 3.0) -> None:
        """`headers` are sent with each request; `connect` is seconds."""
        self._http = HttpClient(url, headers, RequestBounds(connect=connect))
        self.url, self.host = self._http.url, self._http.host

    async def send(self, request: VendorRequest, seconds: float) -> Response:
        """Returns the response if all of it arrives in time. Raises `VendorUnreachable` and `VendorFailed`."""
        headers = {"Accept": request.accept} | ({} if request.body is None else {"Content-Type": "application/json"})
        bounds = replace(self._http.bounds, whole=max(0.001, seconds), largest=request.largest)
        try:
            response = await self._http.send(
                request.method, request.path, headers=headers, body=request.body, bounds=bounds
            )
        except HttpFailed as error:
            raise self._failure(error, request) from None
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise VendorFailed(f"{self.host} sent an encoded response", status=response.status)
        return response

    def _failure(self, error: HttpFailed, request: VendorRequest) -> VendorError:
        if error.fault is HttpFault.LARGE_BODY:
            return VendorFailed(f"{self.host} sent more than {request.largest:,} bytes", status=error.status)
        if not error.sent:
            return VendorUnreachable(f"{self.host} cannot be reached; try again later", sent=False)
        if error.fault is HttpFault.LATE:
            return VendorUnreachable(f"{self.host} did not answer in time; try again later")
        return VendorUnreachable(f"the connection to {self.host} failed ({error})")

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()


@dataclass(frozen=True, slots=True)
class Timing:
    """How time passes; tests pass their own."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    """The machine's time in epoch seconds."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


def bucket_of(plan: Plan) -> Bucket:
    """Returns a bucket a little below the rate and burst of a plan."""
    return Bucket(Rate(plan.per_second * _MARGIN * 60, max(1, plan.burst - 1)))


@cache
def pace_of(plan: Plan, fingerprint: str) -> Bucket:
    """Returns the bucket of a key that all calls of this process share."""
    _ = fingerprint
    return bucket_of(plan)
