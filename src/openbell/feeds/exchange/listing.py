"""What an exchange lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Listing:
    """The pairs that can be asked for."""

    spot: frozenset[str]
    """Pairs with an active spot market, as `BTC/USDT`."""
    swaps: Mapping[str, str]
    """By pair, the exchange's perpetual swap on it that is settled in the quote currency: `BTC/USDT:USDT`."""


def read_listing(markets: Mapping[str, Mapping[str, Any]]) -> Listing:
    """Read ccxt's markets. Raises `ValueError` if there are none: no exchange is empty, so the answer was no answer."""
    spot: set[str] = set()
    swaps: dict[str, str] = {}
    for symbol, market in markets.items():
        if market.get("active") is False:  # None where the exchange does not say
            continue
        if market.get("spot"):
            spot.add(symbol)
        elif market.get("swap") and market.get("linear") and market.get("settle") == market.get("quote"):
            swaps[f"{market['base']}/{market['quote']}"] = symbol
    if not spot:
        raise ValueError("no spot markets in the answer")
    return Listing(frozenset(spot), swaps)
