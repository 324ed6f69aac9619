"""What users do, and what they see: one `Outcome` for each call."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import Any

from openbell.market.clock import parse_time
from tests.operations.outages.station import SYMBOL, Station

SIZE = "0.0001"
"""Of every order, in coins: small beside all limits."""
_UNCERTAIN = re.compile(r"may still take effect|unknown whether")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call returned."""

    works: bool
    text: str
    """The note of a result that has one, or the message of an error, preceded by its code if the contract has codes."""
    seconds: float
    payload: Any = None

    @property
    def is_uncertain(self) -> bool:
        """True if the error says that the call may have taken effect."""
        return bool(_UNCERTAIN.search(self.text))


async def attempt(station: Station, server: str, tool: str, **arguments: Any) -> Outcome:
    """Call a tool."""
    began = time.monotonic()
    reply = await station.call(server, tool, **arguments)
    seconds = time.monotonic() - began
    payload = reply.payload
    if reply.is_error:
        error = payload["error"]
        text = f"{error['code']}: {error['message']}" if isinstance(error, dict) else str(error)
        return Outcome(False, text, seconds)
    data = payload["data"] if "_metadata" in payload else payload
    return Outcome(True, str((reply.truth or {}).get("note") or ""), seconds, data)


class Reader:
    """Reads prices, candles, positions and backtests."""

    def __init__(self, station: Station) -> None:
        self._station = station

    async def price(self) -> Outcome:
        """The price; a result says how old it is if it is not of the newest closed minute."""
        found = await attempt(self._station, "market-data", "get_current_price", symbol=SYMBOL)
        return self._aged(found, found.payload and found.payload["timestamp"], 0)

    async def candles(self) -> Outcome:
        """The newest minutes."""
        found = await attempt(self._station, "market-data", "get_candles", symbol=SYMBOL, timeframe="1m", limit=5)
        return self._aged(found, found.payload and found.payload["items"][-1]["timestamp"], 60)

    async def positions(self, expected: float) -> Outcome:
        """The positions; a result says so if a fill that is due is not shown."""
        found = await attempt(self._station, "portfolio", "get_positions")
        if not found.works or round(sum(each["size"] for each in found.payload["items"]) - expected, 9) == 0:
            return found
        return replace(found, text="; ".join(filter(None, ("a fill that is due is not shown", found.text))))

    async def backtest(self) -> Outcome:
        """A backtest of hours that are stored."""
        dates = {"start_date": "2025-09-01", "end_date": "2025-12-31"}
        return await attempt(self._station, "backtest", "run_backtest", strategy_id="SMA_RSI", symbol=SYMBOL, **dates)

    def _aged(self, found: Outcome, stamp: str | None, length: int) -> Outcome:
        """Add how old a result is, if newer minutes have closed."""
        if not stamp:
            return found
        minutes = int(self._station.clock.epoch() - parse_time(stamp) - length) // 60
        if not minutes:
            return found
        text = "; ".join(filter(None, (f"the newest bar is {minutes} minutes old", found.text)))
        return replace(found, text=text)
