"""Any exchange that ccxt knows: public candles by REST and WebSocket, no account needed."""

from openbell.feeds.exchange.feed import CcxtFeed

__all__ = ["CcxtFeed"]
