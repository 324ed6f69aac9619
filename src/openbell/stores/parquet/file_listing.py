"""Which files of bars exist: the folder of each asset class and timeframe, and the periods of each symbol in it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from openbell.market.errors import InvalidSymbol
from openbell.market.instruments import AssetClass, parse
from openbell.market.series import Series
from openbell.market.timeframes import ALL_NAMES, Timeframe, name_of

_MINUTES = re.compile(r"(?P<symbol>.+)_(?P<period>\d{4}-(?:0[1-9]|1[0-2])(?:\.[a-z0-9-]+)?)\.parquet")
_OTHERS = re.compile(r"(?P<symbol>.+)_(?P<period>(?:\d{4}(?:-\d\d)?|all)\.[a-z0-9-]+)\.parquet")


@lru_cache(maxsize=256)
def folder(root: Path, asset_class: AssetClass, timeframe: Timeframe) -> Path:
    """The folder of the bars of one asset class at one timeframe."""
    return root / asset_class.value / ("1min" if timeframe is Timeframe.M1 else name_of(timeframe, ALL_NAMES))


def folder_of(root: Path, series: Series) -> Path:
    """The folder of the bars of a series."""
    return folder(root, series.instrument.asset_class, series.timeframe)


def folders(root: Path) -> Iterator[tuple[AssetClass, Timeframe, Path]]:
    """All folders that may hold bars."""
    return ((kind, each, folder(root, kind, each)) for kind in AssetClass for each in Timeframe)


def existing(root: Path, series: Series) -> tuple[str, ...]:
    """The periods of a series that have a file, oldest first."""
    return _listing(folder_of(root, series)).get(series.instrument.file_name, ())


def existing_of_each(root: Path, every: Iterable[Series]) -> dict[Series, tuple[str, ...]]:
    """The same for many series; each folder is listed once."""
    listings: dict[Path, dict[str, tuple[str, ...]]] = {}
    found = {}
    for series in every:
        place = folder_of(root, series)
        if place not in listings:
            listings[place] = _listing(place)
        found[series] = listings[place].get(series.instrument.file_name, ())
    return found


def on_disk(root: Path) -> set[Series]:
    """Every series that has a file."""
    found = set()
    for asset_class, timeframe, place in folders(root):
        for name in _listing(place):
            try:
                instrument = parse(name)
            except InvalidSymbol:
                continue
            if instrument.asset_class is asset_class and instrument.file_name == name:
                found.add(Series(instrument, timeframe))
    return found


_listings: dict[Path, tuple[int, dict[str, tuple[str, ...]]]] = {}


def _listing(place: Path) -> dict[str, tuple[str, ...]]:
    """The periods of every symbol in a folder; cached until the folder changes."""
    try:
        changed = place.stat().st_mtime_ns
        if (known := _listings.get(place)) and known[0] == changed:
            return known[1]
        found: dict[str, list[str]] = {}
        pattern = _MINUTES if place.name == "1min" else _OTHERS
        for name in os.listdir(place):
            if match := pattern.fullmatch(name):
                found.setdefault(match["symbol"], []).append(match["period"])
    except FileNotFoundError:
        return {}
    listing = {symbol: tuple(sorted(periods)) for symbol, periods in found.items()}
    # Modification times are coarse: a file created a moment later may leave the same time.
    if time.time_ns() - changed > 100_000_000:
        _listings[place] = (changed, listing)
    return listing
