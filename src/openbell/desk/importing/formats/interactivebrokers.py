"""Interactive Brokers: the bars of its API, with the average price and the number of trades."""

from __future__ import annotations

from openbell.desk.importing.layout import Format, Layout, Sample, by_names

_TYPICAL = {"average", "wap", "barcount", "count"}


def _recognise(sample: Sample) -> Layout | None:
    if len(_TYPICAL.intersection(sample.names)) < 2:
        return None
    return by_names(sample)


FORMAT = Format("interactivebrokers", "date,open,high,low,close,volume,average,barCount", _recognise, rank=40)
