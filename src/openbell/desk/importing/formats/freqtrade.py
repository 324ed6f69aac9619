"""freqtrade: JSON rows of [ms, open, high, low, close, volume], or Feather; the file name has pair and timeframe."""

from __future__ import annotations

import re
from dataclasses import replace

from openbell.desk.importing.layout import Format, Layout, Sample, TableBlock, by_names
from openbell.market.timeframes import SHORT

_NAME = re.compile(r"(?P<base>[A-Z0-9]+)_(?P<quote>[A-Z0-9]+)-(?P<timeframe>\d+[mhdw])\.(?:json|feather)", re.ASCII)
_BARE = ["#0", "#1", "#2", "#3", "#4", "#5"]


def _recognise(sample: Sample) -> Layout | None:
    match = _NAME.fullmatch(sample.name)
    if sample.names == _BARE:
        layout: Layout | None = Layout((0,), (TableBlock(1, 2, 3, 4, 5),), width=6)
    else:
        layout = by_names(sample) if match else None
    if layout is None or match is None:
        return layout
    block = replace(layout.blocks[0], symbol=f"{match['base']}/{match['quote']}")
    return replace(layout, blocks=(block,), timeframe=SHORT.get(match["timeframe"]))


FORMAT = Format("freqtrade", "JSON or Feather: [ms, open, high, low, close, volume]", _recognise, rank=20)
