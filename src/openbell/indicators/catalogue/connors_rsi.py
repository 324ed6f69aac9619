"""Connors' RSI: the mean of the RSI of the close, the RSI of its streak, and the percent rank of its latest change.

A streak is the number of bars in a row with a rise (positive) or a fall (negative); an equal close ends it. The rank is the
share of the `rank_length` changes before that are not above the latest one, in per cent. As in TradingView, the first bar
counts as one of them although it has no change.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from math import inf, isnan, nan

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from openbell.indicators.catalogue.rsi import RunningRsi, rsi
from openbell.indicators.channels import Channels, Line, bounds
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.ties import TOLERANCE
from openbell.market.bars import Bars, Values


def _streak(close: Values) -> Values:
    side = np.sign(np.diff(close, prepend=close[:1]))
    index = np.arange(len(close))
    start = np.maximum.accumulate(np.where(side != np.concatenate((side[:1], side[:-1])), index, 0))
    # The first bar has no change, so its streak is 0 and the next one never continues it.
    streak: Values = side * (index - start + 1)
    return streak


def _rank(close: Values, length: int) -> Values:
    out = np.full(len(close), np.nan)
    count = len(close) - length
    if count > 0:
        change = np.full(len(close), np.nan)
        change[1:] = close[1:] / close[:-1]
        # Compared as `ties.at_most` does, with the tolerance on one side: a stream searches for this limit.
        limit = change[length:] + TOLERANCE * change[length:]
        lower = np.count_nonzero(sliding_window_view(change[:-1], length) <= limit[:, None], axis=1)
        out[length:] = 100.0 * (lower / length)
    return out


def _compute(bars: Bars, rsi_length: int, streak_length: int, rank_length: int) -> Channels:
    close = bars.close
    parts = rsi(close, rsi_length) + rsi(_streak(close), streak_length) + _rank(close, rank_length)
    return Channels(lines=(Line("CRSI", parts / 3.0),), hlines=bounds(30.0, 70.0), y_range=(0.0, 100.0))


class _Stream:
    def __init__(self, rsi_length: int, streak_length: int, rank_length: int) -> None:
        self._rsi, self._streak_rsi = RunningRsi(rsi_length), RunningRsi(streak_length)
        self._changes = deque([inf] * rank_length, maxlen=rank_length)
        self._sorted, self._waits = [inf] * rank_length, rank_length
        self._close, self._streak = nan, 0.0

    def update(self, bar: Bar) -> tuple[float, ...]:
        close, before = bar.close, self._close
        self._close = close
        if close > before:
            self._streak = max(self._streak, 0.0) + 1.0
        elif close < before:
            self._streak = min(self._streak, 0.0) - 1.0
        else:
            self._streak = 0.0
        strength = self._rsi.update(close) + self._streak_rsi.update(self._streak)
        lower = self._rank(inf if isnan(before) else close / before)
        if self._waits:
            self._waits -= 1
            return (nan,)
        return ((strength + 100.0 * (lower / len(self._sorted))) / 3.0,)

    def _rank(self, change: float) -> int:
        """The number of changes in the window that are not above this one, which then replaces the oldest one."""
        changes, ordered = self._changes, self._sorted
        lower = bisect_right(ordered, change + TOLERANCE * change)
        del ordered[bisect_left(ordered, changes[0])]
        insort(ordered, change)
        changes.append(change)
        return lower


def _warmup(rsi_length: int, streak_length: int, rank_length: int) -> int:
    return max(rsi_length + 1, streak_length + 1, rank_length + 1)


INDICATOR = Indicator(
    name="connors_rsi",
    title="CRSI",
    description="Connors' RSI: mean of the RSI of the close, the RSI of its streak and the percent rank of its change",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=_warmup,
    parameters=(
        Parameter("rsi_length", 3, 1, 500),
        Parameter("streak_length", 2, 1, 500, aliases=("up_down_length",)),
        Parameter("rank_length", 100, 1, 500, aliases=("roc_length",)),
    ),
    aliases=("crsi",),
    differs=(
        "While the price does not move each RSI is 50, where TradingView has 100. TradingView's RSI counts average gains "
        "and losses below 1e-10 as none, as at the end of a long halt."
    ),
)
