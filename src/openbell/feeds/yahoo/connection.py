"""Requests to Yahoo: in threads, paced, with a limited number of retries."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import ParamSpec, TypeVar

from openbell.feeds.yahoo.library import CHART, YahooAnswer, YahooClient
from openbell.feeds.yahoo.wire import Chart, MalformedChart, read_chart
from openbell.market.errors import FeedUnavailable, OpenbellError
from openbell.net.rates import Budget, backoff, retry_after
from openbell.stores.threads import Threads

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

URL = "https://query2.finance.yahoo.com" + CHART
PER_MINUTE = 100
"""Requests. Yahoo publishes no limit; it refuses bursts, and addresses that send some thousand requests in an hour."""
TRIES = 3
HOLD = 60.0
"""Seconds for which no request is sent after Yahoo has refused `TRIES` requests for their number."""
MAX_RETRY_AFTER = 30.0
"""The longest Retry-After, in seconds, for which a call waits; it raises at once if Yahoo sends a longer one."""


class YahooConnection:
    """One client of Yahoo, in at most two threads. Raises `FeedUnavailable`, never exceptions of yfinance."""

    def __init__(self, proxy: str = "", pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._proxy = proxy
        self._pause = pause
        self._client: YahooClient | None = None
        self._threads = Threads("yahoo")
        self._making = threading.Lock()
        self._budget = Budget(PER_MINUTE)
        self._suspended_until = -math.inf
        """Monotonic time."""
        self._chance = random.Random()  # noqa: S311 - spreads retries, decides nothing

    async def in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns the result of a function that would block the event loop."""
        return await self._threads.run(work, *args, **kwargs)

    async def chart(self, symbol: str, params: Mapping[str, str]) -> Chart:
        """Returns a chart. Raises `FeedUnavailable`, `SettingsError`, and `wire.Refusal` for errors in Yahoo's JSON."""
        fault, waits = "", 0.0
        for attempt in range(TRIES):
            if attempt:
                pause = max(waits, backoff(attempt - 1, self._chance.random()))
                log.info("Yahoo: %s; retrying in %.1f s", fault, pause)
                await self._pause(pause)
            await self._wait()
            try:
                answer = await self._get(URL + symbol, params)
            except OpenbellError:
                raise
            except Exception as error:  # noqa: BLE001 - yfinance and its parsers raise any class
                fault, waits = type(error).__name__, 0.0
                continue
            if answer.status == 429:
                fault, waits = "HTTP 429", retry_after(answer.headers) or 0.0
                self._budget.hold(waits, time.monotonic())
                if waits > MAX_RETRY_AFTER or attempt + 1 == TRIES:
                    raise self._suspend(max(waits, HOLD))
            elif answer.status in {401, 403}:
                raise FeedUnavailable(
                    f"Yahoo refuses the request (HTTP {answer.status}): try again later; if this persists, "
                    "pip install --upgrade yfinance",
                    status=answer.status,
                )
            elif answer.status >= 500:
                fault, waits = f"HTTP {answer.status}", 0.0
            else:
                try:
                    return await self.in_thread(read_chart, answer.body, params["interval"])
                except MalformedChart as why:
                    fault, waits = f"its response cannot be read: {why}", 0.0
        raise FeedUnavailable(
            f"Yahoo does not respond ({fault}, {TRIES} tries): try again later; if this persists, check the network, and "
            "pip install --upgrade yfinance"
        )

    async def close(self) -> None:
        """Close all connections; the next call opens them again."""
        threads, self._threads = self._threads, Threads("yahoo")
        client, self._client = self._client, None
        await threads.close()
        if client is not None:
            client.close()

    async def _get(self, url: str, params: Mapping[str, str]) -> YahooAnswer:
        """Sends one request, and those for a cookie if there is none. If cancelled, no further request is sent."""
        stop = threading.Event()
        self._budget.take(time.monotonic())
        try:
            return await self._threads.run(self._get_in_thread, url, params, stop)
        finally:
            stop.set()
            self._budget.answered({}, time.monotonic())

    def _get_in_thread(self, url: str, params: Mapping[str, str], stop: threading.Event) -> YahooAnswer:
        with self._making:
            self._client = client = self._client or YahooClient(self._proxy)
        return client.get(url, params, stop)

    async def _wait(self) -> None:
        """Wait until the budget allows a request. Raises `FeedUnavailable` while requests are suspended."""
        if (left := self._suspended_until - time.monotonic()) > 0:
            raise FeedUnavailable(f"Yahoo refuses more requests from this address: {_advice(left)}", status=429)
        while wait := self._budget.wait(time.monotonic()):
            log.info("Yahoo's requests of this minute are used up; continuing in %.1f s", wait)
            await self._pause(wait)

    def _suspend(self, seconds: float) -> FeedUnavailable:
        """Suspends all requests and returns the error: Yahoo refuses an address for longer if requests continue."""
        self._suspended_until = time.monotonic() + seconds
        return FeedUnavailable(
            f"Yahoo refuses more requests from this address (HTTP 429): {_advice(seconds)}", status=429
        )


def _advice(seconds: float) -> str:
    return f"try again in {seconds:.0f} s; if this persists, watch fewer symbols"
