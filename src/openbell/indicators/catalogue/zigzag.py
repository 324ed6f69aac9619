"""Zigzag: the legs between swings that are far enough apart. Only what can no longer move is shown.

As TradingView's: a swing is the extreme of `depth // 2` bars on either side (the first of equal ones), known that many bars
later. Further ones of its kind take its place until one of the other kind lies `deviation` per cent away: that confirms it.
"""

from __future__ import annotations

from itertools import pairwise, repeat
from math import nan

import numpy as np

from openbell.indicators.channels import Channels, Direction, Segment, Signal
from openbell.indicators.highs_and_lows import highest
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars, Values
from openbell.market.session_table import Times

SIGNALS = {"swing_high": Direction.DOWN, "swing_low": Direction.UP}
_HIGH, _LOW = SIGNALS


def _tops(values: Values, half: int) -> Times:
    """The bars above all of the `half` before and below none of the `half` after them."""
    if len(values) <= 2 * half:
        return np.zeros(0, dtype=np.int64)
    reach = highest(values, half)
    centre = values[half:-half]
    return np.flatnonzero((centre > reach[half - 1 : -half - 1]) & (centre >= reach[2 * half :])) + half


def _candidates(bars: Bars, half: int) -> list[tuple[int, int, float]]:
    """Bar, kind (−1 a high, 1 a low) and price of every local extreme, in time; of one bar the high comes first."""
    highs, lows = _tops(bars.high, half), _tops(-bars.low, half)
    found = list(zip(highs.tolist(), repeat(-1), bars.high[highs].tolist(), strict=False))
    found += zip(lows.tolist(), repeat(1), bars.low[lows].tolist(), strict=False)
    return sorted(found)


def _compute(bars: Bars, deviation: float, depth: int) -> Channels:
    half = depth // 2
    signals: list[Signal] = []
    confirmed: list[tuple[int, float]] = []
    last_at, last_kind, last_price = -1, 0, nan
    for at, kind, price in _candidates(bars, half):
        away = (last_price - price) * kind
        if kind == last_kind:
            if away <= 0.0:
                continue
        elif last_kind:
            if 100.0 * away / last_price < deviation:
                continue
            confirmed.append((last_at, last_price))
            signals.append(Signal(at + half, last_price, _LOW if last_kind > 0 else _HIGH))
        last_at, last_kind, last_price = at, kind, price
    legs = tuple(Segment(*begin, *end) for begin, end in pairwise(confirmed))
    return Channels(divlines=legs, signals=tuple(signals))


INDICATOR = Indicator(
    name="zigzag",
    title="Zigzag",
    description="Legs between confirmed swings that lie a percentage apart",
    overlay=True,
    compute=_compute,
    warmup=lambda deviation, depth: 2 * (depth // 2) + 1,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("deviation", 5.0, 0.01, 100.0), Parameter("depth", 5, 2, 200)),
    inputs=("high", "low"),
    signals=SIGNALS,
)
