"""Yahoo Finance, and yfinance for one ticker: one header line, with the adjusted close as a column."""

from __future__ import annotations

from dataclasses import replace

from openbell.desk.importing.layout import ALIASES, Format, Layout, Sample, by_names
from openbell.market.provenance import Adjustment

_TYPICAL = {*ALIASES["adjusted"], "dividends", "stock splits"}


def spell(name: str) -> str:
    """Returns a symbol of Yahoo as ours: EURUSD=X is a pair of currencies."""
    return name.strip().removesuffix("=X")


def _recognise(sample: Sample) -> Layout | None:
    layout = by_names(sample)
    if layout is None or not _TYPICAL.intersection(sample.names):
        return None
    # Intraday prices of Yahoo are never adjusted for dividends. Without an adjusted close, yfinance has adjusted the others.
    days = Adjustment.ALL if layout.blocks[0].adjusted is None else Adjustment.SPLIT
    return replace(layout, spell=spell, adjustment=days, intraday_adjustment=Adjustment.SPLIT)


FORMAT = Format("yahoo", "Date,Open,High,Low,Close,Adj Close,Volume", _recognise, rank=40)
