"""`POST /webhooks/ID`: requests of TradingView and others, which land in their owner's inbox."""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from openbell.desk.alerts.webhooks.service import LARGEST, Receiver
from openbell.market.errors import OpenbellError
from openbell.net.rates import Buckets, Rate

if TYPE_CHECKING:
    from openbell.desk.desk import Desk

log = logging.getLogger(__name__)

PATH = "/webhooks/{id}"
RATE = Rate(per_minute=120, burst=60)
"""Requests of one id."""
_MOST_IDS = 10_000
_ID = re.compile(r"in_[0-9a-f]{32}")


def inbound_route(desk: Desk) -> Route:
    """Returns the route of inbound webhooks. It checks a secret of its own: mount it outside the check of tokens."""
    return Route(PATH, Inbound(Receiver(desk.trading.records, desk.webhooks)).answer, methods=["POST"])


class Inbound:
    """Answers requests to inbound webhooks."""

    def __init__(self, receiver: Receiver, clock: Callable[[], float] = time.monotonic) -> None:
        self._receiver = receiver
        self._buckets = Buckets(RATE, _MOST_IDS)
        self._clock = clock

    async def answer(self, request: Request) -> Response:
        """Returns 200 if the request was recorded, 404 for an unknown id and for a wrong secret alike."""
        if not self._receiver.active:
            return _refusal(503, "this desk does not receive webhooks: it is read-only or its clock is not the present")
        webhook_id = str(request.path_params["id"])
        # The same for ids that exist and ids that do not.
        if wait := self._buckets.take(webhook_id[:64], self._clock()):
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
