"""Alpaca's trading API behind the brokers' port.

`broker` is the port, `reader` asks about orders, fills and the account, `http` says a thing once or asks until it is
answered, `wire` writes and reads the vendor's JSON, `states` puts its words into ours, `outcomes` decides what an answer to
an order leaves certain.
"""

from openbell.brokers.alpaca.broker import AlpacaBroker

__all__ = ["AlpacaBroker"]
