"""MetaTrader 4: no header, dates as 2024.05.06 and times as 00:00 in two columns."""

from __future__ import annotations

import re

from openbell.desk.importing.formats.metatrader5 import ZONE_NOTE
from openbell.desk.importing.layout import Format, Layout, Sample, TableBlock, is_number
from openbell.desk.importing.naming import currencies_in

_DATE, _TIME = re.compile(r"\d{4}\.\d\d\.\d\d", re.ASCII), re.compile(r"\d\d:\d\d(?::\d\d)?", re.ASCII)
_WIDTH = 7


def _recognise(sample: Sample) -> Layout | None:
    if not sample.rows:
        return None
    row = [cell.strip() for cell in sample.rows[0]]
    if len(row) != _WIDTH or not (_DATE.fullmatch(row[0]) and _TIME.fullmatch(row[1]) and all(map(is_number, row[2:]))):
        return None
    block = TableBlock(2, 3, 4, 5, 6, symbol=currencies_in(sample.name))
    return Layout((0, 1), (block,), skip=0, width=_WIDTH, notes=(ZONE_NOTE,))


FORMAT = Format("metatrader4", "no header: 2024.05.06,00:00,open,high,low,close,volume", _recognise, rank=20)
