"""Checks of bars before they are stored. A bar that no read would accept must not be written."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import BadBars
from openbell.market.timeframes import Timeframe


def validated(parts: Sequence[Bars]) -> list[Bars]:
    """The parts, those of the same instrument merged; later parts win. Raises `BadBars`.

    Reading a file with one impossible bar treats the whole file as damaged, so such a bar is refused here.
    """
    filled = [part for part in parts if len(part)]
    if filled:
        _check(filled)
    merged: dict[str, Bars] = {}
    for part in parts:
        earlier = merged.get(part.instrument.symbol)
        merged[part.instrument.symbol] = part if earlier is None else barlib.merge(earlier, part)
    return list(merged.values())


def _check(parts: Sequence[Bars]) -> None:
    """Raises `BadBars`. Checks all parts at once: a minute of 500 symbols is 500 parts of one row each."""
    ends = np.cumsum([len(part) for part in parts])
    if any(part.timeframe is not Timeframe.M1 for part in parts):
        raise _bad(next(part for part in parts if part.timeframe is not Timeframe.M1), "not a minute's")
    whole = parts[0]
    if len(parts) > 1:
        columns = [np.concatenate(group) for group in zip(*(part.columns() for part in parts), strict=True)]
        whole = Bars(whole.instrument, Timeframe.M1, *columns)
    falling = np.flatnonzero(np.diff(whole.time) <= 0) + 1
    falling = falling[~np.isin(falling, ends)]
    if len(falling):
        raise _bad(parts[int(np.searchsorted(ends, falling[0], side="right"))], "out of order or double")
    if wrong := barlib.damage(whole, now=inf):
        reason, mask = wrong[0]
        raise _bad(parts[int(np.searchsorted(ends, np.flatnonzero(mask)[0], side="right"))], reason)


def _bad(part: Bars, reason: str) -> BadBars:
    symbol = part.instrument.symbol
    return BadBars(f"{symbol}: a bar is {reason}; nothing was stored", symbol=symbol, reason=reason)
