"""The markets that an exchange lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Listing:
    """The pairs of an exchange."""

    spot: frozenset[str]
    """Pairs with an active spot market, as `BTC/USDT`."""
    swaps: Mapping[str, str]
    """For each pair its perpetual swap that is settled in the quote currency: `BTC/USDT:USDT`."""


def read_listing(markets: Mapping[str, Mapping[str, Any]]) -> Listing:
    """Reads ccxt's markets. Raises `ValueError` if there is no spot market, because then the response was wrong."""
    spot: set[str] = set()
    swaps: dict[str, str] = {}
    for symbol, market in markets.items():
        if market.get("active") is False:  # None if the exchange does not publish it
            continue
        if market.get("spot"):
            spot.add(symbol)
        elif market.get("swap") and market.get("linear") and market.get("settle") == market.get("quote"):
            swaps[f"{market['base']}/{market['quote']}"] = symbol
    if not spot:
        raise ValueError("no spot markets in the response")
    return Listing(frozenset(spot), swaps)
