"""Answers requests for charts and lists, without HTTP's concerns: a path and a body in, an answer out.

Answers are in the vendor's form: errors are `{"message": …}`, lists are `{"updatedAt", "payload"}`.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from math import isfinite
from typing import Any

from starlette.types import Scope, Send

from openbell.charts.config.choices import Plan
from openbell.charts.config.problems import ConfigProblem
from openbell.charts.config.reading import VENDOR, read_config
from openbell.desk.desk import Desk
from openbell.desk.pictures.chart_image.directory_lists import desk_exchanges, desk_symbols
from openbell.desk.pictures.chart_image.errors import ConfigRefused
from openbell.desk.pictures.chart_image.service import ChartImages, Generated
from openbell.desk.quotes.arche.requests import TRUTH
from openbell.gateway.guard.refusals import GuardRefusal, Headers
from openbell.market.clock import iso
from openbell.market.errors import CallTimeout, DataError, FeedUnavailable, OpenbellError, Refused, StoreError
from openbell.market.instruments import QUOTES
from openbell.protocol.argument_limits import QUICK_BYTES, QUICK_VALUES, Size, size_of
from openbell.protocol.call import on_bars, truth

PREFIXES = ("/v1/tradingview/", "/v2/tradingview/", "/v3/tradingview/")
_MESSAGES = {
    "unauthorized": "Missing or invalid API key: send a token of openbell token add NAME --scopes read as x-api-key",
    "rate_limited": "Too Many Requests",
    "too_many_requests": "Too Many Requests",
}


@dataclass(frozen=True, slots=True)
class ChartResponse:
    """A response."""

    status: int
    body: bytes
    type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    async def send(self, send: Send, more: Headers) -> None:
        """Send the response."""
        headers = [
            (b"content-type", self.type.encode()),
            (b"content-length", b"%d" % len(self.body)),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            *((name.encode(), value.encode()) for name, value in self.headers.items()),
            *more,
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def answer(status: int, value: Any, **headers: str) -> ChartResponse:
    """Returns a JSON response."""
    return ChartResponse(status, json.dumps(value, allow_nan=False).encode(), headers=headers)


def failure(status: int, message: str | Sequence[Mapping[str, Any]], **headers: str) -> ChartResponse:
    """Returns an error."""
    return answer(status, {"message": message}, **headers)


def invalid(problems: Sequence[ConfigProblem], given: Mapping[str, Any]) -> ChartResponse:
    """Returns the error of a config with invalid fields; of an invalid symbol alone, the vendor's words."""
    if [each.field for each in problems] == ["symbol"]:
        return failure(422, "Invalid Symbol")
    faults = [
        {"value": _value(given.get(each.field)), "msg": each.message, "param": each.field, "location": "body"}
        for each in problems
    ]
    return failure(422, faults)


def _value(value: Any) -> Any:
    """Returns what a client has sent, if it is short."""
    if isinstance(value, str):
        return value[:100]
    return value if isinstance(value, int) or (isinstance(value, float) and isfinite(value)) else None


def is_chart_img(path: str) -> bool:
    """Returns True if a path belongs to this API."""
    return path.startswith(PREFIXES)


def refusal_body(_scope: Scope, refusal: GuardRefusal) -> bytes:
    """Returns the body of a gateway's refusal."""
    return json.dumps({"message": _MESSAGES.get(refusal.reason, refusal.message)}).encode()


log = logging.getLogger(__name__)
_LONGEST_NOTE = 1000
"""Characters of the notes in a header: clients refuse long headers."""


class Charts:
    """Draws requests of the vendor's form with this desk's renderer."""

    def __init__(self, desk: Desk, plan: Plan) -> None:
        self._desk = desk
        self._images: ChartImages = desk.chart_images
        self._plan = plan

    async def draw(self, body: bytes, principal: str, *, store: bool) -> ChartResponse:
        """Answers POST /v2/tradingview/advanced-chart and …/storage."""
        if size_of(body) is not Size.QUICK:
            return failure(400, f"Bad Request: the body has more than {QUICK_VALUES} values or {QUICK_BYTES} bytes")
        try:
            raw = json.loads(body or b"{}", parse_constant=_no_number)
        except (ValueError, RecursionError):
            return failure(400, "Bad Request: the body is not JSON")
        if not isinstance(raw, dict):
            return failure(400, "Bad Request: the body is not a JSON object")
        reading = read_config(raw, VENDOR)
        errors = [each for each in reading.problems if each.severity == "error"]
        if reading.config is None:
            return invalid(errors, raw)
        config = reading.config
        if config.width > self._plan.width or config.height > self._plan.height:
            return failure(403, f"Exceed Max Usage Resolution Limit ({self._plan.resolution})")
        if config.parameters > self._plan.parameters:
            return failure(403, f"Exceed Max Usage Parameter Limit ({self._plan.parameters})")
        try:
            made = await self._images.draw(config, self._plan, store=store, principal=principal)
        except OpenbellError as error:
            return failed(error, raw)
        return self._stored(made) if store else self._picture(made)

    def _picture(self, made: Generated) -> ChartResponse:
        return ChartResponse(200, made.data, f"image/{made.format}", self._headers(made))

    def _stored(self, made: Generated) -> ChartResponse:
        expires = "" if made.expires is None else made.expires.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        body = {
            "url": made.url,
            "etag": hashlib.sha256(made.data).hexdigest()[:32],
            "expire": expires,
            "expireAt": expires,
            "createdAt": made.generated.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
            "size": len(made.data),
        }
        return answer(200, body, **self._headers(made))

    def _headers(self, made: Generated) -> dict[str, str]:
        """Returns the header that says what the picture shows: clients of plain HTTP need to know it too."""
        if made.bars is None:
            return {}
        note = "; ".join(made.notes)[:_LONGEST_NOTE] or None
        basis = on_bars(made.bars.instrument, made.bars.end, made.bars.facts, note)
        return {TRUTH: json.dumps(truth(self._desk.settings, self._desk.clock.epoch(), basis))}

    async def exchanges(self) -> ChartResponse:
        """Answers GET /v3/tradingview/exchange/list."""
        found = desk_exchanges(await self._images.known_instruments())
        return self._list(sorted(each.id for each in found))

    async def symbols(self, exchange: str, query: Mapping[str, str]) -> ChartResponse:
        """Answers GET /v3/tradingview/exchange/ID with its filters `symbol` and `type`."""
        code = exchange.upper()
        found = desk_symbols(await self._images.known_instruments(), code)
        if not found:
            return failure(404, "Exchange Not Found")
        symbol, kind = query.get("symbol", "").upper(), query.get("type", "").lower()
        payload = [
            {
                "symbol": each.symbol,
                "description": each.description,
                "type": each.type,
                "exchange": code,
                "currency_code": _currency(each.symbol),
                "provider_id": "openbell",
                "source_id": code,
                "typespecs": [],
            }
            for each in found
            if symbol in each.symbol and kind in {"", each.type}
        ]
        return self._list(payload)

    def _list(self, payload: list[Any]) -> ChartResponse:
        return answer(200, {"updatedAt": iso(self._desk.clock.epoch()), "payload": payload})


def _no_number(name: str) -> None:
    """Refuses NaN and Infinity, which Python reads and JSON does not have. Raises `ValueError`."""
    raise ValueError(name)


def _currency(symbol: str) -> str:
    """Returns the quote currency of a pair; the dollar for stocks."""
    return next((quote for quote in sorted(QUOTES, key=len, reverse=True) if symbol[2:].endswith(quote)), "USD")


def failed(error: OpenbellError, raw: Mapping[str, Any] | None = None) -> ChartResponse:
    """Returns the response to an error; `raw` is the config of the request."""
    if isinstance(error, ConfigRefused):
        return invalid([ConfigProblem(each["field"], each["message"]) for each in error.problems], raw or {})
    if isinstance(error, Refused):
        return failure(403, error.message)
    if isinstance(error, FeedUnavailable | CallTimeout):
        return failure(504, error.message)
    if isinstance(error, DataError):
        return failure(422, error.message)
    if not isinstance(error, StoreError):
        log.error("a request to the chart API failed: %s", error.message)
    return failure(500, error.message)
