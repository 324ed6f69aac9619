"""Finds all feeds: the packages in feeds/, each of which declares itself as FEED, and routes.

A declaration does not load its feed, because the settings are read first. Desk, settings, doctor and documentation read it.

A route names one feed for each asset class, such as `stocks=alpaca,crypto=ccxt:kraken`. It is not a feed of its own: bars
are stored and named by the feed that delivers them.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from openbell import feeds
from openbell.market.errors import NoSuchSeries, SettingsError, UnknownSymbol
from openbell.market.instruments import AssetClass, Instrument, parse
from openbell.market.nearest import did_you_mean
from openbell.market.provenance import Origin, Source

if TYPE_CHECKING:
    from openbell.feeds.port import Feed, Feeds
    from openbell.market.bars import Bars
    from openbell.market.clock import Clock
    from openbell.market.extras import Extra
    from openbell.market.series import Series
    from openbell.market.series_plan import Native
    from openbell.market.timeframes import Timeframe
    from openbell.stores.port import BarStore
    from openbell.stores.threads import Threads

US_STOCKS = tuple(
    "SPY QQQ IWM AAPL MSFT GOOGL AMZN META NVDA TSLA BBAI RIOT NVDX SMR APLD SOUN SERV ACHR BITQ UEC".split()
)
"""US stocks and funds of the chart-signals contract."""
STOCKS_AND_CRYPTO = (*US_STOCKS, "BTC/USD", "ETH/USD")
"""The watchlist of the chart-signals contract, for feeds that have both."""


@dataclass(frozen=True, slots=True)
class Option:
    """A setting of one feed or broker: the variable OPENBELL_NAME, or the name in `openbell.toml`."""

    name: str
    default: str | bool
    help: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FeedParts:
    """What a feed is built from."""

    clock: Clock
    settings: Mapping[str, Any]
    """All settings by name, including the feed's own options."""
    environ: Mapping[str, str]
    """The environment variables, for those that a vendor defines."""
    store: Callable[[], BarStore]
    threads: Threads
    """The threads that read the store."""
    argument: str
    """The text after the colon in OPENBELL_FEED."""


@dataclass(frozen=True, slots=True)
class FeedKind:
    """The declaration of one feed."""

    name: str
    """The value of OPENBELL_FEED, without the colon and the argument."""
    origin: Origin
    """The kind of its data, in the truth header of results."""
    help: str
    source: str
    """The value of `data_source` in payloads; `{argument}` is replaced by the text after the colon."""
    make: Callable[[FeedParts], Feeds]
    argument: str = ""
    """The name of the argument after the colon, in capitals; empty if the feed has none."""
    pattern: str = "[a-z0-9_]+"
    """A regular expression for the argument."""
    extra: str = ""
    """The extra of `pip install openbell[…]` that the feed needs."""
    module: str = ""
    """A module that the extra installs, to check that it is there."""
    options: tuple[Option, ...] = ()
    watchlist: Callable[[str], tuple[str, ...]] | None = None
    """Returns the default watchlist, given the argument: symbols that the feed has. None stands for the stored symbols."""
    notice: str = ""
    """What users must know about the data, such as its delay and the vendor's terms: shown by doctor, in the instructions
    of servers and in the truth header."""

    @property
    def shown(self) -> str:
        """The value of OPENBELL_FEED with the argument's name: `ccxt:EXCHANGE`."""
        return f"{self.name}:{self.argument}" if self.argument else self.name

    def matches(self, feed: str) -> bool:
        """Returns True if this value of OPENBELL_FEED selects this feed."""
        wanted = re.escape(self.name) + (f":{self.pattern}" if self.argument else "")
        return re.fullmatch(wanted, feed) is not None


_ALONE = frozenset({Origin.SIMULATED, Origin.REPLAY})
"""Origins that are never mixed with others."""


@cache
def all_feeds() -> dict[str, FeedKind]:
    """Returns all feeds by name."""
    packages = sorted(each.name for each in pkgutil.iter_modules(feeds.__path__) if each.ispkg)
    found: list[FeedKind] = [importlib.import_module(f"{feeds.__name__}.{name}").FEED for name in packages]
    return {kind.name: kind for kind in found}


def feed_of(feed: str) -> FeedKind:
    """Returns the feed that a value of OPENBELL_FEED selects. Raises `SettingsError`."""
    return _feed_of(feed)


@lru_cache(maxsize=16)
def _feed_of(feed: str) -> FeedKind:
    if routes := parse_routes(feed):
        return routes_kind({asset_class: _feed_of(part) for asset_class, part in routes.items()}, feed)
    for kind in all_feeds().values():
        if kind.matches(feed):
            return kind
    known = ", ".join(kind.shown for kind in all_feeds().values())
    raise SettingsError(
        f"OPENBELL_FEED is {feed!r}: use one of {known}, or routes such as stocks=alpaca,crypto=ccxt:kraken"
        f"{did_you_mean(feed, all_feeds())}"
    )


def parts_of(feed: str) -> dict[str, FeedKind]:
    """Returns the single feeds that a value of OPENBELL_FEED names. Raises `SettingsError`."""
    names = (parse_routes(feed) or {}).values() or (feed,)
    return {name: feed_of(name) for name in names}


def default_watchlist(feed: str, stored: Callable[[], Iterable[Instrument]]) -> tuple[Instrument, ...]:
    """Returns what a desk on this feed watches by default; `stored` returns the stored instruments."""
    found: dict[Instrument, None] = {}
    routes = parse_routes(feed)
    for asset_class, part in routes.items() if routes else ((None, feed),):
        declared = feed_of(part).watchlist
        some = map(parse, declared(part.partition(":")[2])) if declared else stored()
        found.update(dict.fromkeys(each for each in some if asset_class in {None, each.asset_class}))
    return tuple(found)


def described(feed: str, instrument: Instrument | None) -> tuple[str, str]:
    """Returns the name of the feed that delivers an instrument, and the description of its data in payloads."""
    routes = parse_routes(feed)
    if routes and instrument is not None and (part := routes.get(instrument.asset_class)):
        feed = part
    return feed, source_of(feed_of(feed), feed)


def parse_routes(text: str) -> dict[AssetClass, str] | None:
    """Returns the feed of each asset class; None if the text names a single feed. Raises `SettingsError`."""
    if "=" not in text:
        return None
    found: dict[AssetClass, str] = {}
    for part in text.split(","):
        name, _, feed = part.strip().partition("=")
        if name not in {each.value for each in AssetClass} or not feed:
            known = ", ".join(each.value for each in AssetClass)
            raise SettingsError(
                f"OPENBELL_FEED has the route {part.strip()[:60]!r}: write CLASS=FEED, with CLASS one of {known}"
            )
        if AssetClass(name) in found:
            raise SettingsError(f"OPENBELL_FEED has two routes for {name}")
        found[AssetClass(name)] = feed
    return found


def routes_kind(routes: Mapping[AssetClass, FeedKind], text: str) -> FeedKind:
    """Returns the declaration of a feed that consists of others. Raises `SettingsError`."""
    origins = {kind.origin for kind in routes.values()}
    if len(origins) > 1 and origins & _ALONE:
        raise SettingsError(f"OPENBELL_FEED is {text!r}: sim and replay cannot be mixed with other feeds")
    origin = Origin.LIVE if Origin.LIVE in origins else next(iter(origins))
    feeds = parse_routes(text) or {}

    def make(parts: FeedParts) -> Feeds:
        made: dict[tuple[str, str], Feeds] = {}
        by_class = {}
        for asset_class, kind in routes.items():
            argument = feeds[asset_class].partition(":")[2]
            key = (kind.name, argument)
            if key not in made:
                made[key] = kind.make(replace(parts, argument=argument))
            by_class[asset_class] = made[key]
        return RoutedFeed(text, origin, by_class)

    described = "; ".join(f"{each.value}: {source_of(kind, feeds[each])}" for each, kind in routes.items())
    notices = {feeds[each]: kind.notice for each, kind in routes.items() if kind.notice}
    return FeedKind(
        text,
        origin,
        "one feed for each asset class",
        described.replace("{", "{{").replace("}", "}}"),
        make,
        notice="; ".join(f"{feed}: {notice}" for feed, notice in notices.items()),
    )


def source_of(kind: FeedKind, feed: str) -> str:
    """Returns the description of a feed's data in payloads."""
    return kind.source.format(argument=feed.partition(":")[2])


class RoutedFeed:
    """Several feeds, one for each asset class. An asset class without a route has no feed."""

    def __init__(self, name: str, origin: Origin, routes: Mapping[AssetClass, Feeds]) -> None:
        self.name = name
        self.origin = origin
        self._routes = routes
        self._feeds = list(dict.fromkeys(routes.values()))
        self.source: Source | None = next((feed.source for feed in self._feeds if feed.source), None)

    def route(self, instrument: Instrument) -> Feed:
        """Returns the feed of an instrument. Raises `UnknownSymbol` if its asset class has none."""
        feed = self._routes.get(instrument.asset_class)
        if feed is None:
            raise UnknownSymbol(instrument.symbol, f"OPENBELL_FEED has no route for {instrument.asset_class.value}")
        return feed.route(instrument)

    def supports(self, instrument: Instrument) -> bool:
        """Returns True if the instrument's feed supports it."""
        feed = self._routes.get(instrument.asset_class)
        return feed is not None and feed.supports(instrument)

    def listed(self) -> Iterable[Instrument]:
        """Returns those of each asset class's feed."""
        routes = self._routes.items()
        return [each for kind, feed in routes for each in feed.listed() if each.asset_class is kind]

    async def natives(self, instrument: Instrument) -> Mapping[Timeframe, Native]:
        """Returns those of the instrument's feed."""
        return await self.route(instrument).natives(instrument)

    async def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int | None:
        """Returns that of the instrument's feed."""
        return await self.route(instrument).count(instrument, timeframe, start, end)

    def watermark(self, now: float) -> float:
        """Returns the time up to which all feeds are complete."""
        return min(feed.watermark(now) for feed in self._feeds)

    async def history(self, series: Series, start: int, end: int) -> Bars:
        """Returns that of the instrument's feed."""
        return await self.route(series.instrument).history(series, start, end)

    async def extra(self, kind: str, instrument: Instrument, start: int, end: int) -> Extra:
        """Returns that of the instrument's feed."""
        try:
            return await self.route(instrument).extra(kind, instrument, start, end)
        except UnknownSymbol as error:
            raise NoSuchSeries(self.name, kind, instrument.symbol, error.message) from None

    async def close(self) -> None:
        """Close every feed."""
        for feed in self._feeds:
            await feed.close()
