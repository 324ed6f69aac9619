"""Stooq: files of one symbol, named like aapl_us_d.csv, and bulk files with <TICKER> and <PER>."""

from __future__ import annotations

import re
from dataclasses import replace

from openbell.desk.importing.layout import Format, Layout, Sample, by_names, find
from openbell.market.timeframes import Timeframe

_NAME = re.compile(r"(?P<symbol>[a-z0-9]+(?:_us)?)_(?P<period>[dw])\.(?:csv|txt)", re.ASCII)
_PERIODS = {"d": Timeframe.D1, "w": Timeframe.W1}


def _spell(name: str) -> str:
    """Returns a symbol of Stooq as ours: AAPL.US is the American stock."""
    upper = name.strip().upper()
    return upper.removesuffix(".US").removesuffix("_US")


def _recognise(sample: Sample) -> Layout | None:
    layout = by_names(sample)
    if layout is None:
        return None
    period = find(sample.names, ("per",))
    if layout.symbol is not None and period is not None:
        return replace(layout, period=period, spell=_spell)
    match = _NAME.fullmatch(sample.name)
    if match is None or sample.names[:5] != ["date", "open", "high", "low", "close"] or len(sample.names) > 6:
        return None
    block = replace(layout.blocks[0], symbol=match["symbol"])
    return replace(layout, blocks=(block,), timeframe=_PERIODS[match["period"]], spell=_spell)


FORMAT = Format("stooq", "Date,Open,High,Low,Close,Volume; bulk: <TICKER>,<PER>,<DATE>,<TIME>,…", _recognise, rank=30)
