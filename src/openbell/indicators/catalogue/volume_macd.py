"""MACD of volume-weighted averages. A window without volume has the simple average."""

from __future__ import annotations

from openbell.indicators.averages import ema
from openbell.indicators.catalogue.macd import PARAMETERS
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, LinePair, Unit
from openbell.indicators.windows import window_weighted_mean
from openbell.market.bars import Bars


def _compute(bars: Bars, fast: int, slow: int, signal: int) -> Channels:
    quick, calm = (window_weighted_mean(bars.close, bars.volume, length) for length in (fast, slow))
    line = quick - calm
    trigger = ema(line, signal)
    histogram = (Line("Histogram", line - trigger),)
    return Channels(lines=(Line("MACD", line), Line("Signal", trigger)), histogram=histogram, hlines=(ZERO,))


INDICATOR = Indicator(
    name="volume_macd",
    title="Volume MACD",
    description="Difference of a fast and a slow volume-weighted average, its EMA as signal, and their difference",
    brief="Fast less slow volume-weighted average, its signal",
    overlay=False,
    compute=_compute,
    warmup=lambda fast, slow, signal: max(fast, slow) + signal - 1,
    parameters=PARAMETERS,
    aliases=("vwmacd",),
    inputs=("close", "volume"),
    differs="While a whole window has no volume its simple average counts, where TradingView's VWMA has no value.",
    crosses=(LinePair("MACD", "Signal", Unit.VOLUME),),
)
