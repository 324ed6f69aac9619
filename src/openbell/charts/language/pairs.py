"""Pairs of currencies and coins as symbols of configs."""

from __future__ import annotations

from functools import cache

from openbell.charts.language.instruments.catalogue import all_instruments, by_ticker
from openbell.charts.language.instruments.named import InstrumentKind, Named
from openbell.market.instruments import COINS, FIAT, QUOTES, STABLE

Pair = tuple[str, Named | None, str]
"""EXCHANGE:SYMBOL, the instrument of the table, and the quote currency of a coin."""
_METALS = frozenset({"XAU", "XAG", "XPT", "XPD"})


def pair(base: str, quote: str) -> Pair | None:
    """Returns the pair of a base and a quote currency; None if these are no currencies."""
    if base == quote or quote not in QUOTES:
        return None
    if base in FIAT and quote in FIAT:
        return f"FX:{base}{quote}", by_ticker().get(f"{base}{quote}".lower()), ""
    named = by_ticker().get(base.lower())
    if named is not None and named.kind is InstrumentKind.CRYPTO:
        return with_quote(named, quote), named, quote
    if base in COINS | STABLE:
        return f"BINANCE:{base}{_on_binance(quote)}", None, quote
    return (f"OANDA:{base}{quote}", None, "") if base in _METALS and quote in FIAT else None


def with_quote(coin: Named, quote: str) -> str:
    """Returns the symbol of a coin in a quote currency, on the exchange of the table."""
    return f"{coin.exchange}:{coin.base}{_on_binance(quote)}"


def _on_binance(quote: str) -> str:
    """Returns the quote currency on Binance, whose dollar is USDT."""
    return "USDT" if quote == "USD" else quote


def joined_pair(text: str) -> Pair | None:
    """Returns the pair of a text without a separator, such as BTCUSDT or eurusd."""
    name = text.upper()
    for quote in sorted(QUOTES, key=len, reverse=True):
        base = name.removesuffix(quote)
        if base not in {name, ""} and (base in COINS | FIAT | STABLE | _METALS or base.lower() in _coins()):
            return pair(base, quote)
    return None


@cache
def _coins() -> frozenset[str]:
    return frozenset(
        ticker for each in all_instruments() if each.kind is InstrumentKind.CRYPTO for ticker in each.tickers
    )
