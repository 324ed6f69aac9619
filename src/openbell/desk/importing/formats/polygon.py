"""Polygon's flat files: all tickers of a day in one gzip file, times in ns."""

from __future__ import annotations

from dataclasses import replace

from openbell.desk.importing.layout import Format, Layout, Sample, by_names


def _spell(name: str) -> str:
    """Returns a ticker as ours. One with small letters (ABRpD, a preferred share) is left as a text that is no symbol."""
    name = name.strip()
    if name.startswith(("X:", "C:")):  # crypto and currencies
        return name[2:]
    return name if name == name.upper() else f"?{name}"


def _recognise(sample: Sample) -> Layout | None:
    if not {"ticker", "window_start"}.issubset(sample.names):
        return None
    layout = by_names(sample, times=("window_start",))
    return replace(layout, spell=_spell) if layout else None


FORMAT = Format("polygon", "ticker,volume,open,close,high,low,window_start,transactions; ns", _recognise, rank=20)
