"""Finds all feeds: the packages in feeds/, each of which defines FEED."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from functools import cache, lru_cache

from openbell import feeds
from openbell.feeds.declaration import FeedKind
from openbell.feeds.routes import parse_routes, routes_kind, source_of
from openbell.market.errors import SettingsError
from openbell.market.instruments import Instrument, parse
from openbell.market.nearest import did_you_mean


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
