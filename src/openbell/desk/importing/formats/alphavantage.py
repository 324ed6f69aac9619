"""Alpha Vantage: newest bar first, New York time without a zone."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from openbell.desk.importing.layout import Format, Layout, Sample, by_names
from openbell.market.provenance import Adjustment

_NAMES = ["timestamp", "open", "high", "low", "close"]
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d)?", re.ASCII)

_NOTES = ("newest first like Alpha Vantage's files, so the times were taken as New York's (--tz names another zone)",)


def _recognise(sample: Sample) -> Layout | None:
    if not sample.rows or list(sample.rows[0][:5]) != _NAMES:
        return None
    times = sample.column(0)
    if len(times) < 2 or not all(map(_TIME.fullmatch, times)):
        return None
    if any(later <= earlier for later, earlier in pairwise(times)):
        return None
    layout = by_names(sample)
    if layout is None:
        return None
    # Days are as traded; intraday prices are adjusted unless the request has adjusted=false.
    layout = replace(layout, zone="America/New_York", intraday_adjustment=Adjustment.ALL)
    return replace(layout, notes=_NOTES) if len(times[0]) > 10 else layout


FORMAT = Format(
    "alphavantage", "timestamp,open,high,low,close,volume; newest first, New York time", _recognise, rank=45
)
