"""The HTTP connection to one exchange: ccxt's object, the exchange's markets, and retries."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from openbell.feeds.ccxt_exchange.library import Library, load
from openbell.market.errors import FeedUnavailable, UnknownSymbol
from openbell.net.rates import Bucket, Rate

log = logging.getLogger(__name__)

T = TypeVar("T")

TRIES = 4
PAUSE = 0.5
"""Seconds before the first retry; doubled for each further retry."""
MAX_WAIT = 30.0
"""The longest Retry-After, in seconds, for which a call waits; it fails at once if the exchange sends a longer one."""
LISTING_AGE = 86400.0
"""Seconds after which the markets are loaded again, because exchanges add and remove pairs."""
MALFORMED = (TypeError, ValueError, KeyError, IndexError, AttributeError)
"""The exceptions of ccxt's parsers if a response has another shape."""

_SEPARATE = frozenset({("kraken", "AssetPairs")})
"""Requests that do not count towards the rate of candles. Kraken counts requests for candles by address and pair, others
by address alone (https://support.kraken.com/hc/en-us/articles/206548367); this one is sent once a day."""

_CLOSERS: set[asyncio.Task[None]] = set()
_FUTURES = ("product_type", "FUTURE")
"""The parameter of Coinbase's futures. ccxt has no option to leave them out, but loads the spot markets without them."""


class ExchangeConnection:
    """One ccxt object per event loop, shared by all calls, so that its rate limiter counts all of them.

    The object is closed by `close`, or when the event loop ends and cancels its tasks, as `asyncio.run` does.
    """

    def __init__(self, exchange: str, options: Mapping[str, Any], proxy: str = "") -> None:
        self.exchange = exchange
        self.listing: ExchangePairs | None = None
        """None until the markets are loaded for the first time."""
        self._options = options
        self._proxy = proxy
        self._library: Library | None = None
        self._rest: Any = None
        self._loading = asyncio.Lock()
        self._closer: asyncio.Task[None] | None = None
        self._listed_at = 0.0
        self._with_swaps = False
        """True if `listing` has the perpetual swaps."""
        self._suspended_until = 0.0
        self._jitter = random.Random()  # noqa: S311 - spreads retries, decides nothing

    async def library(self) -> Library:
        """Returns ccxt's classes for this exchange. Raises `SettingsError`."""
        if self._library is None:
            self._library = await asyncio.to_thread(load, self.exchange)
        return self._library

    async def rest(self) -> Any:
        """Returns the ccxt object of the running event loop."""
        library = await self.library()
        loop = asyncio.get_running_loop()
        if self._closer is None or self._closer.done() or self._closer.get_loop() is not loop:
            made = self.make(library.rest)
            made.fetch = _json_only(made.fetch)
            made.parse_ohlcv = _with_time(made.parse_ohlcv)
            made.calculate_rate_limiter_cost = _without_separate(made.calculate_rate_limiter_cost, self.exchange)
            self._rest, self._loading = made, asyncio.Lock()
            self._closer = loop.create_task(_close_when_cancelled(self._rest), name=f"ccxt {self.exchange}")
            # An event loop keeps only weak references to its tasks. This task must outlive a feed that is never closed.
            _CLOSERS.add(self._closer)
            self._closer.add_done_callback(_CLOSERS.discard)
        return self._rest

    def make(self, kind: Any) -> Any:
        """Returns a new ccxt object of this class with the markets loaded so far; the caller closes it."""
        made = kind({"enableRateLimit": True, **self._options})
        made.throttler = _Throttle(made.rateLimit / 1000)
        if made.verify:
            made.ssl_context = _tls(made.cafile)
        if self._proxy:  # ccxt 4.5 refuses its own setting for this as a conflict with itself
            made.urls["api"] = _prefixed(made.urls["api"], self._proxy.rstrip("/") + "/")
        if self.listing is not None:
            made.set_markets_from_exchange(self._rest)
        return made

    async def load_listing(self, *, swaps: bool = False) -> ExchangePairs:
        """Returns the markets of the exchange, loaded at most once a day; swaps are loaded when they are first needed.

        Raises `FeedUnavailable`.
        """
        await self.rest()  # creates the lock of this event loop
        async with self._loading:
            current = self.listing is not None and time.monotonic() - self._listed_at < LISTING_AGE
            if self.listing is None or not current or (swaps and not self._with_swaps):
                await self._reload(swaps or self._with_swaps)
                self._listed_at = time.monotonic()
            assert self.listing is not None
            return self.listing

    async def _reload(self, swaps: bool) -> None:
        """Load the markets again; a failure is logged if there are markets from before that have what is needed."""
        whole = swaps

        async def read(rest: Any) -> ExchangePairs:
            nonlocal whole
            before = rest.markets
            try:
                with nullcontext() if whole else spot_only(rest):
                    return read_listing(await rest.load_markets(True))
            except ValueError:
                whole = True  # a few exchanges name their markets by their currencies
                if before:  # ccxt has replaced its markets by the empty response
                    rest.set_markets(before)
                raise

        try:
            self.listing = await self.with_retries(read)
            self._with_swaps = whole
        except FeedUnavailable as error:
            if self.listing is None or swaps != self._with_swaps:
                raise
            log.warning("%s; using the markets that were loaded before", error)

    async def with_retries(self, request: Callable[[Any], Awaitable[T]], symbol: str = "") -> T:
        """Returns the result of one request with ccxt's object, retried after temporary failures.

        Raises `UnknownSymbol` if the exchange refuses the symbol, otherwise `FeedUnavailable`.
        """
        rest = await self.rest()
        errors = (await self.library()).errors
        failure: Exception | None = None
        for attempt in range(TRIES):
            await self.wait_until_allowed()
            rest.last_response_headers = None  # if calls run concurrently, these may be the headers of another call
            pause = PAUSE * 2**attempt * self._jitter.uniform(0.75, 1.25)
            try:
                return await request(rest)
            except errors.BadSymbol as error:
                raise UnknownSymbol(symbol, f"{self.exchange} does not list it") from error
            except (errors.DDoSProtection, errors.RateLimitExceeded) as error:
                failure = error
                self._suspend(_retry_after(rest.last_response_headers) or pause)
            except (errors.OperationFailed, *MALFORMED) as error:
                failure = error
                await asyncio.sleep(pause if attempt < TRIES - 1 else 0.0)
            except errors.BaseError as error:
                # ccxt raises a plain ExchangeError with a cause if the connection breaks during a response.
                if type(error) is not errors.ExchangeError or error.__cause__ is None:
                    raise FeedUnavailable(f"{self.exchange} refuses: {describe(error)}") from error
                failure = error
                await asyncio.sleep(pause if attempt < TRIES - 1 else 0.0)
            log.info("%s: %s (try %d of %d)", self.exchange, describe(failure), attempt + 1, TRIES)
        raise FeedUnavailable(f"{self.exchange} failed {TRIES} times: {describe(failure)}") from failure

    async def close(self) -> None:
        """Close ccxt's object and its connections; the next call opens them again."""
        closer, self._closer = self._closer, None
        if closer is not None and closer.get_loop() is asyncio.get_running_loop():
            closer.cancel()
            with suppress(asyncio.CancelledError):
                await closer

    def _suspend(self, seconds: float) -> None:
        """Suspend all calls for `seconds`: an exchange blocks the address for longer if requests continue."""
        self._suspended_until = max(self._suspended_until, time.monotonic() + seconds)

    async def wait_until_allowed(self) -> None:
        """Wait until the exchange accepts requests again. Raises `FeedUnavailable` if that takes more than `MAX_WAIT`."""
        while (left := self._suspended_until - time.monotonic()) > 0:
            if left > MAX_WAIT:
                raise FeedUnavailable(f"{self.exchange} accepts no requests from this address for another {left:.0f} s")
            await asyncio.sleep(left)


class _Throttle:
    """Replaces ccxt's throttler, whose pauses begin when the next request is made instead of when the last one was sent."""

    loop: asyncio.AbstractEventLoop | None = None
    """Set by ccxt; not used."""

    def __init__(self, pause: float) -> None:
        self._bucket = Bucket(Rate(60 / pause, 1)) if pause else None

    async def __call__(self, cost: float | None = None) -> None:
        wait = self._bucket.reserve(time.monotonic(), cost=1.0 if cost is None else cost) if self._bucket else None
        await asyncio.sleep(wait or 0.0)


async def together(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Returns all results. If one call fails, the others are cancelled and its error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


def _prefixed(urls: Any, proxy: str) -> Any:
    """Returns ccxt's tree of URLs with a proxy before those of HTTP."""
    if isinstance(urls, dict):
        return {name: _prefixed(each, proxy) for name, each in urls.items()}
    return proxy + urls if isinstance(urls, str) and urls.startswith("http") else urls


@cache
def _tls(certificates: str) -> ssl.SSLContext:
    """Returns the settings for https of all ccxt objects. Each would load the certificates again, which takes 20 ms."""
    return ssl.create_default_context(cafile=certificates)


def _json_only(fetch: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Makes ccxt's `fetch` raise `TypeError` if a response is not JSON; ccxt returns it as text, parsed as no candles."""

    async def checked(*arguments: Any) -> Any:
        response = await fetch(*arguments)
        if not isinstance(response, (dict, list, int, float)):
            raise TypeError(f"the response is not JSON: {str(response)[:60]!r}")
        return response

    return checked


def _with_time(parse: Callable[..., Any]) -> Callable[..., Any]:
    """Makes ccxt's candle parser raise `ValueError` if a candle has no time; ccxt drops such candles silently."""

    def checked(*arguments: Any) -> Any:
        candle = parse(*arguments)
        if candle[0] is None:
            raise ValueError(f"not a candle: {str(arguments[0])[:60]!r}")
        return candle

    return checked


def _without_separate(cost: Callable[..., float], exchange: str) -> Callable[..., float]:
    """Makes ccxt's cost of a request 0 if the exchange counts the request separately."""

    def checked(api: Any, method: str, path: str, *arguments: Any) -> float:
        return 0.0 if (exchange, path) in _SEPARATE else cost(api, method, path, *arguments)

    return checked


async def _close_when_cancelled(rest: Any) -> None:
    """Waits until cancelled, then closes ccxt's object."""
    try:
        await asyncio.Event().wait()
    finally:
        await rest.close()


def _retry_after(headers: Mapping[str, str] | None) -> float | None:
    """Returns the seconds of a Retry-After header; None if it is missing or a date."""
    for name, value in (headers or {}).items():
        if name.lower() == "retry-after" and value.strip().isdecimal():
            return float(value)
    return None


def describe(error: BaseException | None) -> str:
    """Returns an exception as one line of text."""
    text = " ".join(str(error).split())
    cause = f" ({type(error.__cause__).__name__})" if error and error.__cause__ else ""
    return f"{type(error).__name__}: {text[:200]}{cause}" if text else f"{type(error).__name__}{cause}"


@dataclass(frozen=True, slots=True)
class ExchangePairs:
    """The pairs of an exchange."""

    spot: frozenset[str]
    """Pairs with an active spot market, as `BTC/USDT`."""
    swaps: Mapping[str, str]
    """For each pair its perpetual swap that is settled in the quote currency: `BTC/USDT:USDT`."""


def read_listing(markets: Mapping[str, Mapping[str, Any]]) -> ExchangePairs:
    """Reads ccxt's markets. Raises `ValueError` if there is no spot market, because then the response was wrong."""
    spot: set[str] = set()
    swaps: dict[str, str] = {}
    for symbol, market in markets.items():
        if market.get("active") is False:  # None if the exchange does not publish it
            continue
        if market.get("spot"):
            spot.add(symbol)
        elif market.get("swap") and market.get("linear") and market.get("settle") == market.get("quote"):
            swaps[f"{market['base']}/{market['quote']}"] = symbol
    if not spot:
        raise ValueError("no spot markets in the response")
    return ExchangePairs(frozenset(spot), swaps)


@contextmanager
def spot_only(rest: Any) -> Iterator[None]:
    """Makes ccxt's `load_markets` leave out currencies and derivatives, for which it sends up to ten more requests."""
    has, request, choice = rest.has, rest.request, rest.options.get("fetchMarkets")
    rest.has = {**has, "fetchCurrencies": False}
    rest.request = _without_futures(request)
    if isinstance(choice, dict) and choice.get("types"):
        rest.options["fetchMarkets"] = {**choice, "types": _spot_of(choice["types"])}
    try:
        yield
    finally:
        rest.has, rest.request = has, request
        rest.options["fetchMarkets"] = choice


def _spot_of(types: Any) -> Any:
    """Returns the types of markets without all but spot; ccxt has them as a list or as a dictionary of switches."""
    return {each: each == "spot" for each in types} if isinstance(types, dict) else ["spot"]


def _without_futures(request: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Makes ccxt's `request` fail for futures before it waits for the exchange's rate."""

    async def checked(path: str, api: Any, method: str, params: Mapping[str, Any], **options: Any) -> Any:
        if _FUTURES in params.items():
            raise LookupError("futures are not loaded")
        return await request(path, api, method, params, **options)

    return checked
