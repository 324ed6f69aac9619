"""The quotes API of this desk, in this process."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from openbell.desk.arche import bodies
from openbell.desk.arche.contract import HEALTH, HISTORICAL, LIVE
from openbell.desk.arche.errors import ApiFault
from openbell.desk.arche.port import ArcheResponse
from openbell.desk.arche.requests import Missing, Params, read_historical, read_live
from openbell.desk.readiness import Checks, desk_checks, feed_check
from openbell.market.errors import OpenbellError

if TYPE_CHECKING:
    from openbell.desk.arche.historical import HistoricalBars
    from openbell.desk.arche.live import LiveQuotes
    from openbell.desk.desk import Desk

log = logging.getLogger(__name__)

SHARE = 0.9
"""The part of a call's timeout that an answer may take, so that its error arrives before the call ends."""
_BUG = "Internal error; the log of the desk has the details"


class LocalUpstream:
    """Implements `port.Upstream` on a desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._limit = desk.settings.timeout * SHARE or None

    @cached_property
    def _live(self) -> LiveQuotes:
        from openbell.desk.arche.live import LiveQuotes

        return LiveQuotes(self._desk.bars, self._desk.settings.stale_after)

    @cached_property
    def _historical(self) -> HistoricalBars:
        from openbell.desk.arche.historical import HistoricalBars

        return HistoricalBars(self._desk.bars)

    @cached_property
    def health(self) -> Checks:
        """The checks behind `/healthz`: the stores can be read, and the feed has answered."""
        return Checks({**desk_checks(self._desk, writing=False), "feed": feed_check(self._desk)})

    async def get(self, path: str, params: Params, request_id: str) -> ArcheResponse:
        """See the port. Never raises for a request, whatever it is."""
        try:
            async with asyncio.timeout(self._limit):
                found = await self._answer(path, params)
        except ApiFault as fault:
            found = bodies.failure(fault, request_id)
        except TimeoutError:
            message = f"The answer takes longer than {self._limit:g} s; bars fetched so far are stored: retry"
            found = bodies.failure(ApiFault("MARKET_DATA_UNAVAILABLE", message), request_id)
        except OpenbellError as error:
            found = bodies.failure(ApiFault("MARKET_DATA_UNAVAILABLE", error.message), request_id)
        except Exception:
            log.exception("request %s failed", request_id)
            found = bodies.failure(ApiFault("INTERNAL_ERROR", _BUG), request_id)
        return replace(found, headers={**found.headers, "x-request-id": request_id})

    async def _answer(self, path: str, params: Params) -> ArcheResponse:
        if path == LIVE:
            return await self._quotes(params)
        if path == HISTORICAL:
            return await self._bars(params)
        assert path == HEALTH, path
        return health_of(await self.health.failing())

    async def _quotes(self, params: Params) -> ArcheResponse:
        tickers = read_live(params)
        found = await self._live.answer(tickers.instruments)
        missing = await self._advised([*tickers.unknown, *found.missing])
        if not found.quotes:
            raise bodies.none_answered(missing)
        payload = {"data": {"items": found.quotes, **bodies.listed(missing)}}
        return bodies.success(payload, missing, bodies.SHORT, found.facts)

    async def _bars(self, params: Params) -> ArcheResponse:
        request = read_historical(params)
        found = await self._historical.answer(request)
        missing = await self._advised([*request.tickers.unknown, *found.missing])
        if len(found.missing) == len(request.tickers.instruments):
            raise bodies.none_answered(missing)
        payload = {
            "page": request.page,
            "page_size": request.page_size,
            "total": found.total,
            "items": found.items,
            **bodies.listed(missing),
        }
        return bodies.success(payload, missing, bodies.LONG if found.final else bodies.ALWAYS_ASK, found.facts)

    async def _advised(self, missing: list[Missing]) -> list[Missing]:
        """Returns tickers without an answer, with suggestions for those that this desk does not know."""
        hint = self._desk.symbol_advice.hint
        return [each if each.known else replace(each, hint=await hint(each.ticker)) for each in missing]


def health_of(failing: list[str]) -> ArcheResponse:
    """Returns the answer of `/healthz`: 200 as long as the process answers, `degraded` if parts of the desk fail."""
    return bodies.plain(200, {"status": "degraded", "failing": failing} if failing else {"status": "ok"})
