"""HistData: no header, semicolons, files named like DAT_ASCII_EURUSD_M1_2024.csv, New York's winter time in all seasons.

Other programs write such rows in other zones, so the name of the file counts.
"""

from __future__ import annotations

import re

from openbell.desk.importing.layout import Format, Layout, Sample, TableBlock, is_number
from openbell.desk.importing.naming import currencies_in

_PREFIX = "DAT_ASCII_"
_TIME = re.compile(r"\d{8} \d{6}", re.ASCII)
_WIDTH = 6
_NOTE = "HistData writes Eastern Standard Time without summer time: UTC-5, unless --tz names another zone"


def _recognise(sample: Sample) -> Layout | None:
    if not sample.rows or not sample.name.startswith(_PREFIX):
        return None
    row = [cell.strip() for cell in sample.rows[0]]
    if len(row) != _WIDTH or not _TIME.fullmatch(row[0]) or not all(map(is_number, row[1:])):
        return None
    block = TableBlock(1, 2, 3, 4, 5, symbol=currencies_in(sample.name.removeprefix(_PREFIX)))
    return Layout((0,), (block,), skip=0, zone="UTC-5", width=_WIDTH, notes=(_NOTE,))


FORMAT = Format(
    "histdata", "no header: 20240506 000000;open;high;low;close;0; DAT_ASCII_PAIR_M1_2024.csv", _recognise, rank=20
)
