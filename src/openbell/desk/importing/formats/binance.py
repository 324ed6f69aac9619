"""Binance's public klines: twelve columns, usually without a header; times in ms, since 2025 in µs."""

from __future__ import annotations

import re

from openbell.desk.importing.layout import Format, Layout, Sample, TableBlock
from openbell.market.timeframes import SHORT

_NAME = re.compile(r"(?P<symbol>[A-Z0-9]{5,20})-(?P<timeframe>\d+[mhdw])-\d{4}-\d\d(?:-\d\d)?\.(?:csv|zip)", re.ASCII)
_EPOCH = re.compile(r"\d{13}|\d{16}", re.ASCII)
_WIDTH, _CLOSE_TIME = 12, 6


def _recognise(sample: Sample) -> Layout | None:
    header = sample.has_header()
    rows = sample.body if header else sample.rows
    if (header and sample.names[:1] not in (["open_time"], ["#0"])) or not rows or len(rows[0]) != _WIDTH:
        return None
    opened, closed = rows[0][0].strip(), rows[0][_CLOSE_TIME].strip()
    if not (_EPOCH.fullmatch(opened) and _EPOCH.fullmatch(closed) and int(closed) > int(opened)):
        return None
    match = _NAME.fullmatch(sample.name)
    return Layout(
        (0,),
        (TableBlock(1, 2, 3, 4, 5, symbol=match["symbol"] if match else None),),
        skip=int(header),
        timeframe=SHORT.get(match["timeframe"]) if match else None,
        width=_WIDTH,
    )


FORMAT = Format(
    "binance", "no header: open_time,open,high,low,close,volume,close_time,… in ms or µs", _recognise, rank=20
)
