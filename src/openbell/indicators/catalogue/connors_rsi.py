"""Connors' RSI: the mean of the RSI of the close, the RSI of its streak, and the percent rank of its latest change.

A streak is the number of bars in a row with a rise (positive) or a fall (negative); an equal close ends it. The rank is the
share of the `rank_length` changes before that are not above the latest one, in per cent. As in TradingView, the first bar
counts as one of them although it has no change.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from openbell.indicators.catalogue.rsi import rsi
from openbell.indicators.channels import Channels, Line, bounds
from openbell.indicators.float_ties import TOLERANCE
from openbell.indicators.spec import Indicator, Parameter
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
        # Compared as `float_ties.at_most` does, with the tolerance on one side: one number per window.
        limit = change[length:] + TOLERANCE * change[length:]
        lower = np.count_nonzero(sliding_window_view(change[:-1], length) <= limit[:, None], axis=1)
        out[length:] = 100.0 * (lower / length)
    return out


def _compute(bars: Bars, rsi_length: int, streak_length: int, rank_length: int) -> Channels:
    close = bars.close
    parts = rsi(close, rsi_length) + rsi(_streak(close), streak_length) + _rank(close, rank_length)
    return Channels(lines=(Line("CRSI", parts / 3.0),), hlines=bounds(30.0, 70.0), y_range=(0.0, 100.0))


def _warmup(rsi_length: int, streak_length: int, rank_length: int) -> int:
    return max(rsi_length + 1, streak_length + 1, rank_length + 1)


INDICATOR = Indicator(
    name="connors_rsi",
    title="CRSI",
    description="Connors' RSI: mean of the RSI of the close, the RSI of its streak and the percent rank of its change",
    brief="Connors' RSI: of the close, its streak and its rank",
    overlay=False,
    compute=_compute,
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
