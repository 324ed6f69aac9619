"""`POST /webhooks/ID`: requests of TradingView and others, which land in their owner's inbox."""

from __future__ import annotations

import logging
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from openbell.desk.webhooks.receiving import LARGEST, Receiver
from openbell.market.errors import OpenbellError

if TYPE_CHECKING:
    from openbell.desk.desk import Desk

log = logging.getLogger(__name__)

PATH = "/webhooks/{id}"
BURST, PER_SECOND = 60, 2.0
"""How many requests of one id are accepted at once, and how many more each second."""
_MOST_IDS = 4_096
_ID = re.compile(r"in_[0-9a-f]{32}")


def inbound_route(desk: Desk) -> Route:
    """Returns the route of inbound webhooks. It checks a secret of its own: mount it outside the check of tokens."""
    return Route(PATH, Inbound(Receiver(desk.trading.records, desk.webhooks)).answer, methods=["POST"])


class Inbound:
    """Answers requests to inbound webhooks."""

    def __init__(self, receiver: Receiver, clock: Callable[[], float] = time.monotonic) -> None:
        self._receiver = receiver
        self._limits = _Limits(clock)

    async def answer(self, request: Request) -> Response:
        """Returns 200 if the request was recorded, 404 for an unknown id and for a wrong secret alike."""
        if not self._receiver.active:
            return _refusal(503, "this desk does not receive webhooks: it is read-only or its clock is not the present")
        webhook_id = str(request.path_params["id"])
        # The same for ids that exist and ids that do not.
        if wait := self._limits.take(webhook_id[:64]):
            return _refusal(429, "too many requests", {"Retry-After": str(math.ceil(wait))})
        try:
            body = await _body(request)
        except ClientDisconnect:
            return Response(status_code=400)
        if body is None:
            # The connection is closed: the rest of the body is not read.
            return _refusal(413, f"the body has more than {LARGEST} bytes", {"Connection": "close"})
        try:
            known = _ID.fullmatch(webhook_id) and await self._receiver.receive(webhook_id, _secrets(request), body)
        except OpenbellError as error:
            log.warning("an inbound webhook could not be recorded: %s", error)
            return _refusal(503, "the request could not be recorded: send it again", {"Retry-After": "5"})
        return JSONResponse({"received": True}) if known else _refusal(404, "there is nothing here")


def _refusal(status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": reason}, status, headers)


def _secrets(request: Request) -> list[str]:
    """Returns the secrets that headers bring."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    bearer = [token.strip()] if kind.lower() == "bearer" else []
    return bearer + request.headers.getlist("x-webhook-secret")[:1]


async def _body(request: Request) -> bytes | None:
    """Returns the body; None if it is too large, which is found out before it is all read."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST:
            return None
    return bytes(body)


class _Limits:
    """A token bucket for each id; the ids that were used longest ago are forgotten."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Tokens, and when they were counted."""

    def take(self, key: str) -> float:
        """Take a token; returns 0, or the seconds until there is one."""
        now = self._clock()
        left, counted = self._buckets.pop(key, (float(BURST), now))
        left = min(float(BURST), left + max(0.0, now - counted) * PER_SECOND)
        taken = left >= 1
        self._buckets[key] = (left - 1 if taken else left, now)
        if len(self._buckets) > _MOST_IDS:
            self._buckets.popitem(last=False)
        return 0.0 if taken else (1 - left) / PER_SECOND
