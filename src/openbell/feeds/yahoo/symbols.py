"""Symbols at Yahoo: `BRK-B`, `BTC-USD`, `EURUSD=X` for our `BRK.B`, `BTC/USD`, `EUR/USD`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openbell.market.instruments import AssetClass, Instrument

_NUMBERED = {"UNI": "UNI7083", "APT": "APT21794", "SUI": "SUI20947", "PEPE": "PEPE24478", "ARB": "ARB11841"}
"""Coins whose plain name is another coin at Yahoo."""
_KINDS = {
    AssetClass.STOCK: {"EQUITY", "ETF", "MUTUALFUND"},
    AssetClass.CRYPTO: {"CRYPTOCURRENCY"},
    AssetClass.FOREX: {"CURRENCY"},
}
"""Yahoo's kinds of instruments by asset class."""


def yahoo_symbol(instrument: Instrument) -> str:
    """Returns Yahoo's symbol of an instrument."""
    if instrument.asset_class is AssetClass.STOCK:
        return instrument.symbol.replace(".", "-")
    base, _, quote = instrument.symbol.partition("/")
    if instrument.asset_class is AssetClass.FOREX:
        return f"{base}{quote}=X"
    return f"{_NUMBERED.get(base, base)}-{quote}"


def mismatch(instrument: Instrument, meta: Mapping[str, Any]) -> str | None:
    """Returns why Yahoo's symbol is not this instrument; None if it is.

    `meta` describes Yahoo's instrument. Yahoo also describes names that it does not list, without a currency.
    """
    if not meta.get("currency"):
        return "Yahoo does not list it"
    kind = meta.get("instrumentType")
    if kind not in _KINDS[instrument.asset_class]:
        return f"at Yahoo this symbol is of the kind {str(kind)[:40]}"
    zone = meta.get("exchangeTimezoneName")
    if instrument.asset_class is AssetClass.STOCK and zone != "America/New_York":
        return f"Yahoo lists it on an exchange in {str(zone)[:40]}, not in the US"
    return None
