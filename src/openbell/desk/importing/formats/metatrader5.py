"""MetaTrader 5: tabs, names in angle brackets, dates as 2024.05.06."""

from __future__ import annotations

from dataclasses import replace

from openbell.desk.importing.layout import ALIASES, Format, Layout, Sample, by_names, find
from openbell.desk.importing.naming import currencies_in

ZONE_NOTE = "MetaTrader writes the time of the broker's server; --tz names its zone (many brokers: America/New_York+7)"


def _recognise(sample: Sample) -> Layout | None:
    if not sample.rows or sample.rows[0][0].strip().upper() != "<DATE>" or "tickvol" not in sample.names:
        return None
    real = find(sample.names, ("vol",))
    # The volume of currencies is the number of ticks; brokers write 0 as the real one.
    traded = real is not None and any(cell.strip("0.,") for cell in sample.column(real))
    layout = by_names(sample, ALIASES | {"volume": ("vol",) if traded else ("tickvol",)})
    if layout is None:
        return None
    notes = (ZONE_NOTE,) if len(layout.time) == 2 else ()
    block = replace(layout.blocks[0], symbol=currencies_in(sample.name))
    return replace(layout, blocks=(block,), notes=(*notes, f"volume is <{'VOL' if traded else 'TICKVOL'}>"))


FORMAT = Format(
    "metatrader5", "tabs: <DATE> <TIME> <OPEN> <HIGH> <LOW> <CLOSE> <TICKVOL> <VOL> <SPREAD>", _recognise, rank=20
)
