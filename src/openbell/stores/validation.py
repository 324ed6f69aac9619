"""Checks of bars before they are stored. A bar that no read would accept must not be written."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import BadBars
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe


def validated(parts: Sequence[Bars]) -> list[Bars]:
    """The parts, those of the same series merged; later parts win. Raises `BadBars`.

    Reading a file with one impossible bar treats the whole file as damaged, so such a bar is refused here.
    """
    for timeframe in {part.timeframe for part in parts if len(part)}:
        _check([part for part in parts if part.timeframe is timeframe and len(part)])
    merged: dict[Series, Bars] = {}
    for part in parts:
        series = part.series
        earlier = merged.get(series)
        merged[series] = part if earlier is None else barlib.merge(earlier, part)
    return list(merged.values())


def _check(parts: Sequence[Bars]) -> None:
    """Raises `BadBars`. Checks all parts at once: a minute of 500 symbols is 500 parts of one row each."""
    ends = np.cumsum([len(part) for part in parts])
    whole = parts[0]
    if len(parts) > 1:
        columns = [np.concatenate(group) for group in zip(*(part.columns() for part in parts), strict=True)]
        whole = Bars(whole.instrument, whole.timeframe, *columns)
    falling = np.flatnonzero(np.diff(whole.time) <= 0) + 1
    falling = falling[~np.isin(falling, ends)]
    if len(falling):
        raise _bad(parts[int(np.searchsorted(ends, falling[0], side="right"))], "out of order or double")
    if wrong := barlib.damage(whole, now=inf):
        reason, mask = wrong[0]
        raise _bad(parts[int(np.searchsorted(ends, np.flatnonzero(mask)[0], side="right"))], reason)
    for part in parts if whole.timeframe is not Timeframe.M1 else ():
        starts, _ = barlib.bucket_bounds(part.instrument, part.timeframe, part.time)
        if (starts != part.time).any():
            raise _bad(part, "not at the start of its bucket")


def _bad(part: Bars, reason: str) -> BadBars:
    symbol = part.series.name
    return BadBars(f"{symbol}: a bar is {reason}; nothing was stored", symbol=symbol, reason=reason)
