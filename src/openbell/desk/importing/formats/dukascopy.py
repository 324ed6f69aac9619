"""Dukascopy: times in a column `Gmt time` or `Local time`, files named like EURUSD_Candlestick_1_Hour_BID_….csv."""

from __future__ import annotations

from dataclasses import replace

from openbell.desk.importing.layout import Format, Layout, Sample, by_names
from openbell.desk.importing.naming import currencies_in

_ZONES = {"gmt time": "UTC", "local time": None}
"""The zone of times that have none, by the name of their column."""


def _recognise(sample: Sample) -> Layout | None:
    if sample.names[1:] != ["open", "high", "low", "close", "volume"] or sample.names[0] not in _ZONES:
        return None
    layout = by_names(sample)
    if layout is None:
        return None
    block = replace(layout.blocks[0], symbol=currencies_in(sample.name))
    return replace(layout, blocks=(block,), zone=_ZONES[sample.names[0]])


FORMAT = Format("dukascopy", "Gmt time,Open,High,Low,Close,Volume; 06.05.2024 00:00:00.000", _recognise, rank=50)
