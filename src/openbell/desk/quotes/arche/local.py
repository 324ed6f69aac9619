"""The quotes API of this desk, in this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from openbell.desk.events.checks import Check, Checks
from openbell.desk.quotes.arche import bodies
from openbell.desk.quotes.arche.errors import ApiFault
from openbell.desk.quotes.arche.requests import (
    HEALTH,
    HISTORICAL,
    LIVE,
    ArcheResponse,
    Missing,
    Params,
    read_historical,
    read_live,
)
from openbell.market.errors import OpenbellError

if TYPE_CHECKING:
    from openbell.desk.bars.service import BarService
    from openbell.desk.quotes.arche.historical import HistoricalBars
    from openbell.desk.quotes.arche.live import LiveQuotes

log = logging.getLogger(__name__)

SHARE = 0.9
"""The part of a call's timeout that an answer may take, so that its error arrives before the call ends."""
_BUG = "Internal error; the log of the desk has the details"


@dataclass(frozen=True, slots=True)
class LocalParts:
    """What the quotes API of this process uses of its desk."""

    bars: Callable[[], BarService]
    hint: Callable[[str], Awaitable[str]]
    """Returns suggestions for a ticker that this desk does not know."""
    checks: Callable[[], Mapping[str, Check]]
    """Returns the checks behind `/healthz`: the stores can be read, and the feed has answered."""
    timeout: float
    """Seconds after which a call ends; 0: never."""
    stale_after: float


class LocalUpstream:
    """Implements `port.Upstream` on a desk."""

    def __init__(self, parts: LocalParts) -> None:
        self._parts = parts
        self._limit = parts.timeout * SHARE or None

    @cached_property
    def _live(self) -> LiveQuotes:
        from openbell.desk.quotes.arche.live import LiveQuotes

        return LiveQuotes(self._parts.bars(), self._parts.stale_after)

    @cached_property
    def _historical(self) -> HistoricalBars:
        from openbell.desk.quotes.arche.historical import HistoricalBars

        return HistoricalBars(self._parts.bars())

    @cached_property
    def health(self) -> Checks:
        """The checks behind `/healthz`."""
        return Checks(self._parts.checks())

    async def get(self, path: str, params: Params, request_id: str) -> ArcheResponse:
        """See the port. Never raises for a request, whatever it is."""
        try:
            async with asyncio.timeout(self._limit) as bound:
                found = await self._answer(path, params)
        except ApiFault as fault:
            found = bodies.failure(fault, request_id)
        except OpenbellError as error:
            found = bodies.failure(ApiFault("MARKET_DATA_UNAVAILABLE", error.message), request_id)
        except Exception as error:
            if isinstance(error, TimeoutError) and bound.expired():  # other timeouts are faults of something inside
                message = f"The answer takes longer than {self._limit:g} s; bars fetched so far are stored: retry"
                found = bodies.failure(ApiFault("MARKET_DATA_UNAVAILABLE", message), request_id)
            else:
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
        hint = self._parts.hint
        return [each if each.known else replace(each, hint=await hint(each.ticker)) for each in missing]


def health_of(failing: list[str]) -> ArcheResponse:
    """Returns the answer of `/healthz`: 200 as long as the process answers, `degraded` if parts of the desk fail."""
    return bodies.plain(200, {"status": "degraded", "failing": failing} if failing else {"status": "ok"})
