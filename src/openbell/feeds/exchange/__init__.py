"""Any exchange that ccxt supports: public candles by REST and WebSocket, no account needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openbell.feeds.declaration import FeedKind, FeedParts
from openbell.market.provenance import Origin

if TYPE_CHECKING:
    from openbell.feeds.port import Feed


def _make(parts: FeedParts) -> Feed:
    from openbell.feeds.exchange.feed import CcxtFeed

    # The address of a proxy that takes the exchange's URL in its path.
    return CcxtFeed(parts.clock, parts.argument, proxy=parts.environ.get("CCXT_PROXY_URL", ""))


FEED = FeedKind(
    "ccxt",
    Origin.LIVE,
    "an exchange that ccxt supports, such as ccxt:binance",
    "{argument} (live data)",
    _make,
    argument="EXCHANGE",
    extra="ccxt",
    module="ccxt",
)
