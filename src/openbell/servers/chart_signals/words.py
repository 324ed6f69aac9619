"""Literals of the contract."""

from __future__ import annotations

from openbell.servers.chart_signals.shapes import MarketHours

MARKET_HOURS: MarketHours = {"stocks": "9:30 AM - 4:00 PM ET (weekdays)", "crypto": "24/7"}
