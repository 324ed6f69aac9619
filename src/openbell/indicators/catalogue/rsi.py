"""Wilder's relative strength index. 50 while the price does not move."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openbell.indicators.averages import wilder
from openbell.indicators.channels import Channels, Direction, Line, bounds
from openbell.indicators.float_ties import OSCILLATOR, at_least, at_most
from openbell.indicators.rules import Rule, array_signals, becomes
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars, Values

OVERBOUGHT, OVERSOLD = 70.0, 30.0


def rsi(close: Values, length: int) -> Values:
    """0 to 100, NaN for the first `length` bars."""
    change = np.diff(close, prepend=np.nan)
    gain = wilder(np.maximum(change, 0.0), length)
    loss = wilder(np.maximum(-change, 0.0), length)
    moved = gain + loss
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(moved == 0.0, 50.0, 100.0 * (gain / moved))


def _compute(bars: Bars, length: int) -> Channels:
    values = rsi(bars.close, length)
    return Channels(
        lines=(Line("RSI", values),),
        signals=array_signals(_rules, (values,)),
        hlines=bounds(OVERSOLD, OVERBOUGHT),
        y_range=(0.0, 100.0),
    )


def _rules(before: Sequence[Values], now: Sequence[Values]) -> Sequence[Rule]:
    """A signal where the RSI reaches a level."""
    (value_before,), (value,) = before, now
    high_before, high = (at_least(each, OVERBOUGHT, OSCILLATOR) for each in (value_before, value))
    low_before, low = (at_most(each, OVERSOLD, OSCILLATOR) for each in (value_before, value))
    return (
        ("rsi_overbought", becomes(high_before, high), value),
        ("rsi_oversold", becomes(low_before, low), value),
    )


INDICATOR = Indicator(
    name="rsi",
    title="RSI",
    description="Wilder's relative strength index of the close",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 14, 1, 500, aliases=("period",)),),
    aliases=("relative_strength_index",),
    signals={"rsi_overbought": Direction.DOWN, "rsi_oversold": Direction.UP},
    differs=(
        "While the price does not move it is 50, where TradingView has 100. TradingView counts average gains and losses "
        "below 1e-10 as none, as at the end of a long halt."
    ),
)
