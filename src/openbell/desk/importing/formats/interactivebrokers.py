"""Interactive Brokers: the bars of its API (TRADES), with the average price and the number of trades."""

from __future__ import annotations

from dataclasses import replace

from openbell.desk.importing.layout import Format, Layout, Sample, by_names
from openbell.market.provenance import Adjustment

_TYPICAL = {"average", "wap", "barcount", "count"}


def _recognise(sample: Sample) -> Layout | None:
    if len(_TYPICAL.intersection(sample.names)) < 2:
        return None
    layout = by_names(sample)
    return replace(layout, adjustment=Adjustment.SPLIT) if layout else None


FORMAT = Format("interactivebrokers", "date,open,high,low,close,volume,average,barCount", _recognise, rank=40)
