"""Answers requests for charts and lists, without HTTP's concerns: a path and a body in, an answer out."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from datetime import UTC
from typing import Any

from openbell.charts.config.choices import Plan
from openbell.charts.config.problems import ConfigProblem
from openbell.charts.config.reading import VENDOR, read_config
from openbell.desk.desk import Desk
from openbell.desk.pictures.chart_image.directory_lists import desk_exchanges, desk_symbols
from openbell.desk.pictures.chart_image.errors import ConfigRefused
from openbell.desk.pictures.chart_image.service import ChartImages, Generated
from openbell.desk.quotes.arche.port import TRUTH
from openbell.gateway.chart_img.bodies import ChartResponse, answer, failure, invalid
from openbell.market.clock import iso
from openbell.market.errors import CallTimeout, DataError, FeedUnavailable, OpenbellError, Refused, StoreError
from openbell.market.instruments import QUOTES
from openbell.protocol.argument_limits import QUICK_BYTES, QUICK_VALUES, Size, size_of
from openbell.protocol.call import on_bars, truth

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
        return {TRUTH: json.dumps(truth(self._desk, self._desk.clock.epoch(), basis))}

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
