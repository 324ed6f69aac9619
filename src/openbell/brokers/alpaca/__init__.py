"""Alpaca's trading API behind the brokers' port.

`broker` implements the port, `http` sends requests and maps failed answers to errors, `wire` writes and reads Alpaca's
JSON, `states` maps its order states to ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openbell.brokers.registry import BrokerKind, BrokerParts
from openbell.feeds.registry import Option
from openbell.market.errors import SettingsError

if TYPE_CHECKING:
    from openbell.trading.broker import Broker


def _make(parts: BrokerParts) -> Broker:
    key, secret = parts.environ.get("ALPACA_API_KEY", ""), parts.environ.get("ALPACA_SECRET_KEY", "")
    if not key or not secret:
        raise SettingsError("the broker alpaca needs ALPACA_API_KEY and ALPACA_SECRET_KEY")
    from openbell.brokers.alpaca.broker import AlpacaBroker

    url = parts.environ.get("ALPACA_TRADING_URL") or None
    broker: Broker = AlpacaBroker(key, secret, live=parts.settings["alpaca_live"], trading_url=url)
    return broker


BROKER = BrokerKind(
    "alpaca",
    "Alpaca, on its paper account unless alpaca_live is set",
    _make,
    live=lambda settings: bool(settings["alpaca_live"]),
    needs="ALPACA_API_KEY, ALPACA_SECRET_KEY and OPENBELL_ALPACA_LIVE",
    paper_account="Alpaca's own paper account",
    # Alpaca allows 200 requests a minute, and looking up one order may take two.
    look_up_every=3.0,
    look_up_most=2,
    options=(
        Option("alpaca_live", False, "with broker alpaca: trade with real money, not on Alpaca's own paper account"),
    ),
)
