"""Kraken's OHLCVT files: seven columns without a header, in files named PAIR_MINUTES.csv."""

from __future__ import annotations

import re

from openbell.desk.importing.layout import Format, Layout, Sample, TableBlock, is_number
from openbell.desk.importing.naming import timeframe_of

_NAME = re.compile(r"(?P<pair>[A-Z0-9]{5,15})_(?P<minutes>\d{1,5})\.csv", re.ASCII)
_EPOCH = re.compile(r"\d{9,10}", re.ASCII)
_WIDTH = 7
_BARE = [f"#{at}" for at in range(8)]
"""The answer of its API, in JSON: with the average price before the volume."""
_COINS = {"XBT": "BTC", "XDG": "DOGE"}
"""Kraken's own names of coins."""


def _spell(name: str) -> str:
    for theirs, ours in _COINS.items():
        name = re.sub(f"^{theirs}|{theirs}$", ours, name)
    return name


def _recognise(sample: Sample) -> Layout | None:
    if sample.names == _BARE:
        return Layout((0,), (TableBlock(1, 2, 3, 4, 6),), width=len(_BARE))
    if not sample.rows or sample.has_header():
        return None
    row = [cell.strip() for cell in sample.rows[0]]
    if len(row) != _WIDTH or not _EPOCH.fullmatch(row[0]) or not all(map(is_number, row)) or not row[6].isdigit():
        return None
    match = _NAME.fullmatch(sample.name)
    return Layout(
        (0,),
        (TableBlock(1, 2, 3, 4, 5, symbol=match["pair"] if match else None),),
        skip=0,
        timeframe=timeframe_of(match["minutes"]) if match else None,
        width=_WIDTH,
        spell=_spell,
    )


FORMAT = Format("kraken", "no header: epoch,open,high,low,close,volume,trades; PAIR_MINUTES.csv", _recognise, rank=20)
