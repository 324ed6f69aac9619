"""Yahoo Finance: bars of US stocks, crypto and forex without an account, delayed, for personal use.

`feed` implements the port and polls the minutes, `candles` declares the timeframes, fetches them and converts symbols and
bars, `wire` parses Yahoo's JSON, `connection` paces and retries requests, `library` loads yfinance, which handles Yahoo's
cookies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openbell.feeds.registry import STOCKS_AND_CRYPTO, FeedKind, FeedParts
from openbell.market.provenance import Origin

if TYPE_CHECKING:
    from openbell.feeds.port import Feed


def _make(parts: FeedParts) -> Feed:
    from openbell.feeds.yahoo.feed import YahooFeed

    # The address of a proxy that takes Yahoo's URL in its path.
    return YahooFeed(parts.clock, proxy=parts.environ.get("YAHOO_PROXY_URL", ""))


FEED = FeedKind(
    "yahoo",
    Origin.LIVE,
    "Yahoo Finance without an account, delayed, for personal use",
    "Yahoo Finance (delayed, for personal use)",
    _make,
    extra="yahoo",
    module="yfinance",
    watchlist=lambda _argument: STOCKS_AND_CRYPTO,
    notice="delayed data, for personal use only (Yahoo's terms)",
)
