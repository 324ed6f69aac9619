"""Literals of the contract."""

from __future__ import annotations

from openbell.desk.desk import Desk
from openbell.servers.chart_signals.shapes import MarketHours

MARKET_HOURS: MarketHours = {"stocks": "9:30 AM - 4:00 PM ET (weekdays)", "crypto": "24/7"}

_SOURCES = {
    "sim": "Openbell simulator (simulated data)",
    "replay": "Replay of stored bars",
    "none": "Imported bars",
    "alpaca": "Alpaca (live data)",
}


def data_source(desk: Desk) -> str:
    """Where the numbers come from, in words."""
    feed = desk.settings.feed
    return _SOURCES.get(feed) or f"{feed.removeprefix('ccxt:')} (live data)"
