"""Requests to Yahoo: in threads, paced, with a limited number of retries, and the charts in their responses.

yfinance is loaded on first use, because it takes a second and, with pandas, 120 MB. Only its `YfData.get` is used, which
obtains Yahoo's cookies and crumb and accepts its consent form, as a browser does. Its functions for prices are not used:
they log most failures and return an empty table instead.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import random
import sys
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from openbell.market.errors import FeedUnavailable, OpenbellError, SettingsError
from openbell.net.rates import Budget, backoff, retry_after
from openbell.stores.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Iterator

Values = npt.NDArray[np.float64]
_PRICES = ("open", "high", "low", "close")


class MalformedChart(Exception):
    """A response does not follow Yahoo's protocol; the text is the reason."""


class YahooRefusal(Exception):
    """Yahoo returns an error instead of a chart; the text is its description."""


@dataclass(frozen=True, slots=True)
class Chart:
    """The rows of a chart, sorted by time, and what Yahoo states about the instrument."""

    meta: Mapping[str, Any]
    time: npt.NDArray[np.int64]
    """Epoch seconds at which the rows begin; of the last row, which may be the latest trade, any second."""
    prices: Values
    """Open, high, low and close, one column each; NaN where Yahoo has no value."""
    volume: Values


def read_chart(body: bytes, interval: str) -> Chart:
    """Returns the chart of a response. Raises `MalformedChart` and `YahooRefusal`."""
    try:
        chart = json.loads(body)["chart"]
    except (ValueError, RecursionError):
        raise MalformedChart("not JSON") from None
    except (KeyError, TypeError):
        raise MalformedChart("JSON without a chart") from None
    try:
        if error := chart["error"]:
            raise YahooRefusal(str(error["description"])[:200])
        found = chart["result"][0]
        meta = found["meta"]
        if (bars := meta["dataGranularity"]) != interval:
            raise MalformedChart(f"bars of {str(bars)[:20]} instead of {interval}")
        return _sorted(meta, found)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
        raise MalformedChart("JSON of another shape") from None


def _sorted(meta: Mapping[str, Any], found: Mapping[str, Any]) -> Chart:
    """Returns the rows by time; of rows with the same time, Yahoo's order is kept."""
    times = np.array(found.get("timestamp") or [], dtype=np.int64)
    quote = found["indicators"]["quote"][0]
    columns = [np.array(quote[name] if len(times) else [], dtype=np.float64) for name in (*_PRICES, "volume")]
    if any(column.shape != times.shape for column in columns):
        raise ValueError("columns of different lengths")
    order = np.argsort(times, kind="stable")
    return Chart(
        meta,
        times[order],
        np.stack(columns[:-1], axis=1)[order],
        np.nan_to_num(columns[-1][order], nan=0.0),
    )


def shortest(prices: Values) -> Values:
    """Returns prices without the noise of 32-bit numbers: 237.42 for Yahoo's 237.4199981689453.

    Yahoo stores prices as 32-bit numbers and prints them with the digits of 64-bit numbers. The result is the shortest
    number with the same 32 bits. It keeps the order of prices. Prices that are no 32-bit numbers are not changed.
    """
    with np.errstate(over="ignore"):
        narrow = prices.astype(np.float32)
    short = narrow.astype("U32").astype(np.float64)
    return np.where(narrow.astype(np.float64) == prices, short, prices)


TIMEOUT = 10.0
"""Seconds for one request. yfinance would wait 30 s for a cookie."""
CHART = "/v8/finance/chart/"
_COOKIE = "https://fc.yahoo.com"
"""The address at which yfinance obtains a cookie."""
_COOKIE_REFUSED = frozenset({401, 403})
"""HTTP statuses after which yfinance obtains another cookie and repeats the request."""


@dataclass(frozen=True, slots=True)
class YahooAnswer:
    """An HTTP response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Stopped(Exception):
    """The caller was cancelled before the request was sent."""


class _Final(Exception):
    """A response to a request for a chart that another cookie would not change."""

    def __init__(self, answer: YahooAnswer) -> None:
        super().__init__(answer.status)
        self.answer = answer


class YahooClient:
    """yfinance's client with cookies of its own. `get` blocks: call it in a thread."""

    def __init__(self, proxy: str) -> None:
        data, session = _load()
        self._running = threading.local()
        self._session = session(self, proxy)
        # Not YfData(…): that returns the same object, with the same cookies, to everyone in the process.
        self._data = type.__call__(data, self._session)

    def get(self, url: str, params: Mapping[str, str], stop: threading.Event) -> YahooAnswer:
        """Returns the response; after `stop` is set, no further request is sent. Raises whatever yfinance raises."""
        self._running.stop = stop
        try:
            response = self._data.get(url, params=params, timeout=TIMEOUT)
        except _Final as final:
            return final.answer
        return _answer(response)

    def before_request(self) -> None:
        """Raises `Stopped` if the caller of `get` was cancelled."""
        if self._running.stop.is_set():
            raise Stopped

    def close(self) -> None:
        """Close all connections."""
        self._session.close()


@cache
def _load() -> tuple[Any, Any]:
    """Returns yfinance's `YfData` and the class of its sessions."""
    # TA-Lib is loaded without pandas, which yfinance needs. Python's lock on this module keeps the two imports apart.
    import_module("openbell.indicators.ta_lib")
    try:
        with _silent():
            import yfinance
            from curl_cffi import requests
            from yfinance.data import YfData
    except ImportError as missing:
        raise SettingsError(
            f"The feed yahoo needs a package that is not installed ({missing}): "
            f"{sys.executable} -m pip install 'openbell[yahoo]'"
        ) from missing
    # yfinance would write cookies to the user's cache folder. This path cannot be a folder, so it keeps them in memory.
    yfinance.set_tz_cache_location(os.devnull)
    return YfData, _session_class(requests.Session)


@contextmanager
def _silent() -> Iterator[None]:
    """Suppresses the output of yfinance: it logs to standard error if its logger has no handler, and shows warnings."""
    logger = logging.getLogger("yfinance")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _session_class(base: Any) -> Any:
    class Session(base):  # type: ignore[misc] # curl_cffi is loaded at run time
        """A session that imitates a browser, limits every request in time, and stops when its caller is cancelled."""

        def __init__(self, client: YahooClient, proxy: str) -> None:
            super().__init__(impersonate="chrome")
            self._client = client
            self._proxy = proxy.rstrip("/") + "/" if proxy else ""
            self._cookie_response: Any = None

        def request(self, method: str, url: str, **given: Any) -> Any:
            self._client.before_request()
            if url == _COOKIE and self._cookie_response is not None and len(self.cookies):
                return self._cookie_response  # without its cache folder, yfinance would fetch a cookie for every chart
            given["timeout"] = min(given.get("timeout") or TIMEOUT, TIMEOUT)
            response = super().request(method, self._proxy + url, **given)
            response.url = response.url.removeprefix(self._proxy)
            if CHART in url and response.status_code >= 400 and response.status_code not in _COOKIE_REFUSED:
                raise _Final(_answer(response))
            if url == _COOKIE:
                self._cookie_response = response
            return response

    return Session


def _answer(response: Any) -> YahooAnswer:
    headers = {name.lower(): value for name, value in response.headers.items() if value is not None}
    return YahooAnswer(response.status_code, headers, response.content)


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
