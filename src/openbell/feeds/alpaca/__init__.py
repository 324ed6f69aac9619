"""Alpaca's market data: minute bars of US stocks and crypto, by REST and by WebSocket.

`feed` is the feeds' port, `rest` asks for history, `socket` is one streaming connection, `stream` makes complete minutes of
what several connections and the history say, `minutes` decides between two versions of a bar, `wire` reads the vendor's
rows, `refusals` turns its errors into ours, `session` keeps the HTTP client.
"""

from openbell.feeds.alpaca.feed import AlpacaFeed

__all__ = ["AlpacaFeed"]
