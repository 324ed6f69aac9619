"""Any exchange that ccxt supports: public candles by REST and WebSocket, no account needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openbell.feeds.registry import FeedKind, FeedParts
from openbell.market.provenance import Origin

if TYPE_CHECKING:
    from openbell.feeds.port import Feed


def _make(parts: FeedParts) -> Feed:
    from openbell.feeds.ccxt_exchange.feed import CcxtFeed

    # The address of a proxy that takes the exchange's URL in its path.
    return CcxtFeed(parts.clock, parts.argument, proxy=parts.environ.get("CCXT_PROXY_URL", ""))


_COINS = ("BTC", "ETH", "SOL", "XRP", "DOGE", "ADA", "LTC", "LINK")
_QUOTES = {
    "USD": (
        "binanceus",
        "bitfinex",
        "bitstamp",
        "coinbase",
        "coinbaseadvanced",
        "coinbaseexchange",
        "gemini",
        "kraken",
    ),
    "USDC": ("hyperliquid",),
    "JPY": ("bitbank", "bitflyer", "coincheck"),
    "KRW": ("bithumb", "upbit"),
}
"""The quote currency of the pairs that exchanges trade most, if it is not USDT."""


def _watchlist(exchange: str) -> tuple[str, ...]:
    quote = next((quote for quote, exchanges in _QUOTES.items() if exchange in exchanges), "USDT")
    return tuple(f"{coin}/{quote}" for coin in _COINS)


FEED = FeedKind(
    "ccxt",
    Origin.LIVE,
    "an exchange that ccxt supports, such as ccxt:binance",
    "{argument} (live data)",
    _make,
    argument="EXCHANGE",
    extra="ccxt",
    module="ccxt",
    watchlist=_watchlist,
)
