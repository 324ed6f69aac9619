"""Fetches Alpaca's history over HTTP: paged, paced by Alpaca's rate-limit headers, with a limited number of retries."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from openbell.feeds.alpaca import refusals
from openbell.feeds.alpaca.wire import MalformedMessage, Page, Row, decode, read_page
from openbell.market.clock import Clock, iso
from openbell.market.errors import FeedUnavailable, OpenbellError
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.timeframes import Timeframe
from openbell.net.http import HttpClient, HttpFailed, RequestBounds
from openbell.net.rates import Budget, backoff, retry_after, vendor_time
from openbell.net.response import Response

log = logging.getLogger(__name__)

PER_MINUTE = 200
TRIES = 4
BOUNDS = RequestBounds(whole=30.0, part=10.0, largest=64_000_000, connections=5)
"""Of one try. A full page has about a million bytes; the time without a byte would not end one that arrives very slowly."""
MAX_RETRY_AFTER = 60.0
"""The longest Retry-After, in seconds, for which a call waits; it raises at once if Alpaca sends a longer one."""
_PAGE = 10_000
_SYMBOLS = 100
"""Symbols in one request, so that its URL stays short."""
_LARGE = 100_000
"""Bytes. Larger pages are parsed in a thread, because they would block the event loop noticeably."""

_NAMES = {
    Timeframe.M1: "1Min",
    Timeframe.M3: "3Min",
    Timeframe.M5: "5Min",
    Timeframe.M15: "15Min",
    Timeframe.M30: "30Min",
    Timeframe.H1: "1Hour",
    Timeframe.D1: "1Day",
}
_PATHS = {AssetClass.STOCK: "/v2/stocks/bars", AssetClass.CRYPTO: "/v1beta3/crypto/us/bars"}


class Rest:
    """Alpaca's HTTP API. Raises `FeedUnavailable` and `UnknownSymbol`, never exceptions of the HTTP client."""

    def __init__(
        self,
        clock: Clock,
        keys: tuple[str, str],
        *,
        feed: str,
        adjustment: str,
        data_url: str,
        trading_url: str,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._secrets = keys
        self._stocks = {"adjustment": adjustment, "feed": feed}
        self._data_url = data_url.rstrip("/")
        self._trading_url = trading_url.rstrip("/")
        self._pause = pause
        headers = {"APCA-API-KEY-ID": keys[0], "APCA-API-SECRET-KEY": keys[1]}
        urls = (self._data_url, self._trading_url)
        self._clients = {url: HttpClient(url, headers, BOUNDS, decode=True) for url in urls}
        self._budgets = {url: Budget(PER_MINUTE) for url in urls}
        self._chance = random.Random()  # noqa: S311 - spreads retries, decides nothing
        self.clock_offset = 0.0
        """Seconds between Alpaca's time and the clock's, from the latest response."""

    async def rows(
        self, instruments: Sequence[Instrument], start: int, end: int, timeframe: Timeframe = Timeframe.M1
    ) -> dict[Instrument, list[Row]]:
        """Returns the rows that opened in [start, end) by instrument, sorted; of rows with the same time the last one."""
        found: dict[Instrument, dict[int, Row]] = {instrument: {} for instrument in instruments}
        for group in _groups(instruments):
            token: str | None = None
            seen: set[str] = set()
            while True:
                page = await self._page(group, start, end, timeframe, token)
                for instrument, rows in page.rows.items():
                    found[instrument].update((row[0], row) for row in rows if start <= row[0] < end)
                token = page.token
                if token is None:
                    break
                if token in seen:
                    raise refusals.unreadable("history", "its pages repeat")
                seen.add(token)
        return {instrument: [rows[at] for at in sorted(rows)] for instrument, rows in found.items()}

    async def listed(self, instrument: Instrument) -> bool | None:
        """Returns True if Alpaca lists the instrument, False if not, None if the lookup fails."""
        path = f"/v2/assets/{quote(instrument.symbol, safe='')}"
        with suppress(FeedUnavailable):
            answer = await self._get(self._trading_url, path, {}, tries=1)
            if answer.status in {200, 404}:
                return answer.status == 200
            log.info("cannot find out whether Alpaca lists %s (HTTP %d)", instrument, answer.status)
        return None

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.close()

    async def _page(
        self, group: Sequence[Instrument], start: int, end: int, timeframe: Timeframe, token: str | None
    ) -> Page:
        asset_class = group[0].asset_class
        params = {
            "symbols": ",".join(instrument.symbol for instrument in group),
            "timeframe": _NAMES[timeframe],
            "start": _rfc3339(start),
            "end": _rfc3339(end - 1),  # Alpaca's end is inclusive
            "limit": str(_PAGE),
            "sort": "asc",
        }
        if asset_class is AssetClass.STOCK:
            params |= self._stocks
        if token:
            params["page_token"] = token
        answer = await self._get(self._data_url, _PATHS[asset_class], params)
        if answer.status != 200:
            raise self._refusal(answer, group)
        asked = {instrument.symbol: instrument for instrument in group}
        try:
            if len(answer.body) < _LARGE:
                page = read_page(answer.body, asked)
            else:
                page = await asyncio.to_thread(read_page, answer.body, asked)
        except MalformedMessage as why:
            raise refusals.unreadable("history", str(why)) from None
        for reason, count in page.dropped.items():
            log.warning("dropped %d bars of Alpaca's history (%s): %s", count, params["symbols"], reason)
        return page

    async def _get(self, base: str, path: str, params: Mapping[str, str], tries: int = TRIES) -> Response:
        """Returns the response after retries of temporary failures. Raises `FeedUnavailable` if all tries fail."""
        for attempt in range(tries):
            try:
                answer = await self._send(base, path, params)
            except FeedUnavailable as error:
                fault, wait = error.message, 0.0
            else:
                if not (answer.status in {408, 429} or answer.status >= 500):
                    return answer
                fault, wait = f"HTTP {answer.status}", retry_after(answer.headers) or 0.0
                if wait > MAX_RETRY_AFTER:
                    raise FeedUnavailable(
                        f"Alpaca accepts no requests for {wait:.0f} s (HTTP {answer.status}): try again later"
                    )
                if answer.status == 429:
                    self._budgets[base].hold(wait, time.monotonic())
            if attempt + 1 < tries:
                pause = max(wait, backoff(attempt, self._chance.random()))
                log.info("Alpaca: %s; retrying in %.1f s", fault, pause)
                await self._pause(pause)
        raise FeedUnavailable(
            f"Alpaca does not respond ({fault}, {tries} tries): try again later; "
            "if this persists, check the network and status.alpaca.markets"
        )

    async def _send(self, base: str, path: str, params: Mapping[str, str]) -> Response:
        """Sends one request. Raises `FeedUnavailable` if there is no complete response."""
        client, budget = self._clients[base], self._budgets[base]
        async with client.turn():
            if wait := budget.wait(time.monotonic()):
                log.info("Alpaca's requests of this minute are used up; continuing in %.1f s", wait)
                await self._pause(wait)
            budget.take(time.monotonic())
            headers: Mapping[str, str] = {}
            before = self._clock.epoch()
            try:
                answer = await client.send("GET", path, params=params)
                headers = answer.headers
            except HttpFailed as error:
                raise FeedUnavailable(str(error)) from None
            else:
                return answer
            finally:
                budget.answered(headers, time.monotonic())
                if (vendor := vendor_time(headers)) is not None:
                    self.clock_offset = max(before - vendor, vendor - self._clock.epoch(), 0.0)

    def _refusal(self, answer: Response, group: Sequence[Instrument]) -> OpenbellError:
        message: Any = ""
        with suppress(MalformedMessage, AttributeError):
            message = decode(answer.body).get("message")
        text = message[:200] if isinstance(message, str) else ""
        for secret in self._secrets:
            text = text.replace(secret, "…")
        return refusals.by_status(answer.status, text, group)


def _groups(instruments: Sequence[Instrument]) -> Iterator[Sequence[Instrument]]:
    for asset_class in _PATHS:
        of_class = [instrument for instrument in instruments if instrument.asset_class is asset_class]
        for at in range(0, len(of_class), _SYMBOLS):
            yield of_class[at : at + _SYMBOLS]


def _rfc3339(epoch: int) -> str:
    return iso(epoch).replace("+00:00", "Z")
