"""Commodities as a spot price. Those that are traded as futures only are in `futures`."""

from __future__ import annotations

from openbell.charts.language.instruments.named import Kind, Named, words


def _spot(symbol: str, names: str, tickers: str = "", **listings: str) -> Named:
    return Named(symbol, Kind.COMMODITY, words(names), words(tickers), frozenset(), listings)


INSTRUMENTS = (
    _spot("TVC:GOLD", "gold", OANDA="XAUUSD"),
    _spot("OANDA:XAUUSD", "spot gold, gold spot", "xauusd, xau"),
    _spot("TVC:SILVER", "silver", OANDA="XAGUSD"),
    _spot("OANDA:XAGUSD", "spot silver, silver spot", "xagusd, xag"),
    _spot("TVC:USOIL", "oil, crude, crude oil, wti crude, us oil, west texas intermediate", "wti, usoil"),
    _spot("TVC:UKOIL", "brent, brent crude, brent oil, brent crude oil, uk oil", "ukoil"),
    _spot("TVC:PLATINUM", "platinum, spot platinum"),
    _spot("TVC:PALLADIUM", "palladium, spot palladium"),
)
