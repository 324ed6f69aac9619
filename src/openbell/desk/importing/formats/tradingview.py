"""TradingView's export of a chart: time as an epoch or with an offset, then prices, then the columns of studies."""

from __future__ import annotations

import re
from dataclasses import replace

from openbell.desk.importing.layout import Format, Layout, Sample, by_names
from openbell.desk.importing.stamps import EPOCH, ISO
from openbell.market.provenance import Adjustment

_NAME = re.compile(
    r"(?P<venue>[A-Z]+(?:_IDC)?)_(?P<symbol>[A-Z0-9.]+), ?(?P<period>[0-9A-Z]+)(?: ?\(\d+\)|_[0-9a-f]+)?\.csv", re.ASCII
)


def _recognise(sample: Sample) -> Layout | None:
    if sample.names[:5] != ["time", "open", "high", "low", "close"]:
        return None
    layout = by_names(sample)
    times = sample.column(0)
    if layout is None or not times or not all(map(_is_absolute, times)):
        return None
    match = _NAME.fullmatch(sample.name)
    symbol = f"{match['venue']}:{match['symbol']}" if match else None
    return replace(layout, blocks=(replace(layout.blocks[0], symbol=symbol),), adjustment=Adjustment.SPLIT)


def _is_absolute(text: str) -> bool:
    """Returns True for seconds since 1970 and for times with an offset; daily bars have dates in some exports."""
    match = ISO.fullmatch(text)
    return bool(match and (match["zone"] or not match["time"])) or (len(text) == 10 and bool(EPOCH.fullmatch(text)))


FORMAT = Format("tradingview", "time,open,high,low,close,Volume and columns of studies", _recognise, rank=50)
