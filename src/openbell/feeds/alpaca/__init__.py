"""Alpaca's market data: minute bars of US stocks and crypto, by REST and by WebSocket.

`feed` implements the port, `rest` fetches the history, `socket` is one streaming connection, `stream` builds complete
minutes from several connections and the history, `wire` parses Alpaca's JSON, `refusals` translates its errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openbell.feeds.registry import STOCKS_AND_CRYPTO, FeedKind, FeedParts, Option
from openbell.market.errors import SettingsError
from openbell.market.provenance import Origin

if TYPE_CHECKING:
    from openbell.feeds.port import Feed

_URLS = {
    "data_url": "ALPACA_DATA_URL",
    "stream_url": "ALPACA_STREAM_URL",
    "trading_url": "ALPACA_TRADING_URL",
}
"""Environment variables for other addresses, such as a proxy."""


def _make(parts: FeedParts) -> Feed:
    from openbell.feeds.alpaca.feed import AlpacaFeed

    key, secret = parts.environ.get("ALPACA_API_KEY", ""), parts.environ.get("ALPACA_SECRET_KEY", "")
    if not key or not secret:
        raise SettingsError("the feed alpaca needs ALPACA_API_KEY and ALPACA_SECRET_KEY (a free account has them)")
    urls: dict[str, Any] = {name: parts.environ[var] for name, var in _URLS.items() if parts.environ.get(var)}
    tape, adjustment = parts.settings["alpaca_feed"], parts.settings["alpaca_adjustment"]
    return AlpacaFeed(parts.clock, key, secret, feed=tape, adjustment=adjustment, **urls)


FEED = FeedKind(
    "alpaca",
    Origin.LIVE,
    "Alpaca, with the keys of a free account",
    "Alpaca Markets",
    _make,
    extra="alpaca",
    module="websockets",
    watchlist=lambda _argument: STOCKS_AND_CRYPTO,
    options=(
        Option("alpaca_feed", "iex", "Alpaca's tape for stocks: iex (free) or sip", ("iex", "sip")),
        Option(
            "alpaca_adjustment",
            "raw",
            "Alpaca's adjustment of stock prices: raw, split, dividend or all",
            ("raw", "split", "dividend", "all"),
        ),
    ),
)
