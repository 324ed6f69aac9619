"""The HTTP side of one exchange: ccxt's object, its markets, and what is done when it fails."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from openbell.feeds.exchange.library import Library, load
from openbell.feeds.exchange.listing import Listing, read_listing
from openbell.market.errors import FeedUnavailable, UnknownSymbol

log = logging.getLogger(__name__)

T = TypeVar("T")

TRIES = 4
PAUSE = 0.5
"""Seconds before the second try; each further pause is twice as long."""
LONGEST_HOLD = 30.0
"""Seconds for which a call waits when the exchange asks for a pause; for a longer one it fails at once."""
LISTING_AGE = 86400.0
"""Seconds after which the markets are loaded again: pairs come and go."""
MALFORMED = (TypeError, ValueError, KeyError, IndexError, AttributeError)
"""What ccxt's parsers raise on an answer of another shape."""

_KEEPERS: set[asyncio.Task[None]] = set()


class Connection:
    """One ccxt object per event loop, shared by all calls, so that its rate limiter sees them all.

    The object is closed by `close`, and by itself when its loop ends and cancels its tasks, as `asyncio.run` does.
    """

    def __init__(self, exchange: str, options: Mapping[str, Any]) -> None:
        self.exchange = exchange
        self.listing: Listing | None = None
        """None until it is loaded for the first time."""
        self._options = options
        self._library: Library | None = None
        self._rest: Any = None
        self._keeper: asyncio.Task[None] | None = None
        self._listed_at = 0.0
        self._barred_until = 0.0
        self._jitter = random.Random()  # noqa: S311 - spreads retries, decides nothing

    async def library(self) -> Library:
        """The classes that ccxt has for this exchange. Raises `SettingsError`."""
        if self._library is None:
            self._library = await asyncio.to_thread(load, self.exchange)
        return self._library

    async def rest(self) -> Any:
        """The ccxt object of this event loop."""
        library = await self.library()
        loop = asyncio.get_running_loop()
        if self._keeper is None or self._keeper.done() or self._keeper.get_loop() is not loop:
            made = self.make(library.rest)
            made.fetch = _json_only(made.fetch)
            made.parse_ohlcv = _with_time(made.parse_ohlcv)
            self._rest = made
            self._keeper = loop.create_task(_keep(self._rest), name=f"ccxt {self.exchange}")
            # A loop does not hold its tasks: this one must outlive a feed that is dropped without being closed.
            _KEEPERS.add(self._keeper)
            self._keeper.add_done_callback(_KEEPERS.discard)
        return self._rest

    def make(self, kind: Any) -> Any:
        """A new ccxt object of this class, with the markets that are loaded already; the caller closes it."""
        made = kind({"enableRateLimit": True, **self._options})
        if self.listing is not None:
            made.set_markets_from_exchange(self._rest)
        return made

    async def load_listing(self) -> Listing:
        """What the exchange lists, loaded at most once a day. Raises `FeedUnavailable`."""
        if self.listing is not None and time.monotonic() - self._listed_at < LISTING_AGE:
            return self.listing

        async def read(rest: Any) -> Listing:
            before = rest.markets
            try:
                return read_listing(await rest.load_markets(True))
            except ValueError:
                if before:  # ccxt has replaced them by the nothing that it read
                    rest.set_markets(before)
                raise

        try:
            self.listing = await self.ask(read)
        except FeedUnavailable as error:
            if self.listing is None:
                raise
            log.warning("%s; the listing of yesterday stands in", error)
        self._listed_at = time.monotonic()
        return self.listing

    async def ask(self, call: Callable[[Any], Awaitable[T]], symbol: str = "") -> T:
        """Make one call on ccxt's object, again after a pause while it fails in a way that may pass.

        Raises `UnknownSymbol` for a symbol that the exchange refuses, otherwise `FeedUnavailable`.
        """
        rest = await self.rest()
        errors = (await self.library()).errors
        failure: Exception | None = None
        for attempt in range(TRIES):
            await self.hold()
            rest.last_response_headers = None  # of another call if many run at once: a hint, not more
            pause = PAUSE * 2**attempt * self._jitter.uniform(0.75, 1.25)
            try:
                return await call(rest)
            except errors.BadSymbol as error:
                raise UnknownSymbol(symbol, f"{self.exchange} does not know it") from error
            except (errors.DDoSProtection, errors.RateLimitExceeded) as error:
                failure = error
                self._bar(_retry_after(rest.last_response_headers) or pause)
            except (errors.OperationFailed, *MALFORMED) as error:
                failure = error
                await asyncio.sleep(pause if attempt < TRIES - 1 else 0.0)
            except errors.BaseError as error:
                # A connection that breaks in mid-answer comes as a plain ExchangeError with a cause.
                if type(error) is not errors.ExchangeError or error.__cause__ is None:
                    raise FeedUnavailable(f"{self.exchange} refuses: {describe(error)}") from error
                failure = error
                await asyncio.sleep(pause if attempt < TRIES - 1 else 0.0)
            log.info("%s: %s (try %d of %d)", self.exchange, describe(failure), attempt + 1, TRIES)
        raise FeedUnavailable(f"{self.exchange} failed {TRIES} times: {describe(failure)}") from failure

    async def close(self) -> None:
        """Close ccxt's object and its connections; the next call opens them again."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None and keeper.get_loop() is asyncio.get_running_loop():
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper

    def _bar(self, seconds: float) -> None:
        """Hold back every call for that long: an exchange that is asked on bars the address for longer."""
        self._barred_until = max(self._barred_until, time.monotonic() + seconds)

    async def hold(self) -> None:
        """Wait until the exchange takes requests again. Raises `FeedUnavailable` if that is long."""
        while (left := self._barred_until - time.monotonic()) > 0:
            if left > LONGEST_HOLD:
                raise FeedUnavailable(f"{self.exchange} takes no requests from here for another {left:.0f} s")
            await asyncio.sleep(left)


def _json_only(fetch: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Refuse an answer that is no JSON: ccxt hands it on as text, and its parsers read no candles in it."""

    async def checked(*arguments: Any) -> Any:
        answer = await fetch(*arguments)
        if not isinstance(answer, (dict, list, int, float)):
            raise TypeError(f"the answer is no JSON: {str(answer)[:60]!r}")
        return answer

    return checked


def _with_time(parse: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse an answer with what is no candle: ccxt leaves out those without a time, all of them if need be."""

    def checked(*arguments: Any) -> Any:
        candle = parse(*arguments)
        if candle[0] is None:
            raise ValueError(f"no candle: {str(arguments[0])[:60]!r}")
        return candle

    return checked


async def _keep(rest: Any) -> None:
    """Hold ccxt's object until cancelled, then close it."""
    try:
        await asyncio.Event().wait()
    finally:
        await rest.close()


def _retry_after(headers: Mapping[str, str] | None) -> float | None:
    """The seconds of a Retry-After header; None without one, or if it is a date."""
    for name, value in (headers or {}).items():
        if name.lower() == "retry-after" and value.strip().isdecimal():
            return float(value)
    return None


def describe(error: BaseException | None) -> str:
    """What happened, in one line."""
    text = " ".join(str(error).split())
    cause = f" ({type(error.__cause__).__name__})" if error and error.__cause__ else ""
    return f"{type(error).__name__}: {text[:200]}{cause}" if text else f"{type(error).__name__}{cause}"
