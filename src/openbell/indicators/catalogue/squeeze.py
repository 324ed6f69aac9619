"""TTM squeeze: Bollinger bands within the Keltner channel show low volatility; the momentum shows the direction."""

from __future__ import annotations

from collections.abc import Sequence

from openbell.indicators.catalogue.atr import true_range
from openbell.indicators.channels import ZERO, Channels, Direction, Line
from openbell.indicators.float_ties import above
from openbell.indicators.rules import Rule, array_signals, becomes
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import mean_and_deviation, middle, weighted_sum, window_sum
from openbell.market.bars import Bars, Values


def line_end(length: int) -> list[float]:
    """The weights that give the end point of the least-squares line, oldest first."""
    return [1.0 / length + (6.0 * age - 3.0 * (length - 1)) / (length * (length + 1)) for age in range(length)]


def _momentum(bars: Bars, average: Values, length: int) -> Values:
    """Linear regression of the close's distance from the mean of its range's middle and its average."""
    distance = bars.close - (middle(bars.high, bars.low, length) + average) / 2.0
    return weighted_sum(distance, line_end(length))


def _compute(bars: Bars, length: int, bb_mult: float, kc_mult: float) -> Channels:
    average, deviation = mean_and_deviation(bars.close, length)
    widths = (bb_mult * deviation, kc_mult * (window_sum(true_range(bars), length) / length))
    return Channels(
        histogram=(Line("Momentum", _momentum(bars, average, length)),),
        signals=array_signals(_rules, (*widths, bars.close)),
        hlines=(ZERO,),
    )


def _rules(before: Sequence[Values], now: Sequence[Values]) -> Sequence[Rule]:
    """Where a squeeze starts and where it ends, from half the widths of bands and channel, and the close. The value is 0."""
    # Bands and channel have the same middle, so the narrower one lies within the other.
    (bands_before, channel_before, close_before), (bands, channel, close) = before, now
    squeezed_before, squeezed = above(channel_before, bands_before, close_before), above(channel, bands, close)
    return (
        ("squeeze_on", becomes(squeezed_before, squeezed), 0.0),
        ("squeeze_off", becomes(squeezed, squeezed_before), 0.0),
    )


INDICATOR = Indicator(
    name="squeeze",
    title="Squeeze",
    description="TTM squeeze: momentum by linear regression; on while the Bollinger bands lie within the Keltner channel",
    brief="TTM squeeze: Bollinger within Keltner, with momentum",
    overlay=False,
    compute=_compute,
    warmup=lambda length, bb_mult, kc_mult: 2 * length - 1,  # noqa: ARG005 - takes every parameter
    parameters=(
        Parameter("length", 20, 2, 500),
        Parameter("bb_mult", 2.0, 0.1, 10.0),
        Parameter("kc_mult", 1.5, 0.1, 10.0),
    ),
    aliases=("ttm_squeeze",),
    inputs=("high", "low", "close"),
    signals={"squeeze_on": Direction.NEITHER, "squeeze_off": Direction.NEITHER},
)
