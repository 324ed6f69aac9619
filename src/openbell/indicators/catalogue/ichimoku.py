"""Ichimoku: four lines of middles between the highest high and the lowest low, and the lagging close.

As in TradingView, a displacement of 26 counts the bar itself: the two spans are drawn 25 bars after the bar that they are
computed at, so 25 of their values are ahead of the last bar. The lagging line is the close drawn 25 bars before its own bar,
so it is not known at the bar at which it is drawn.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, FilledBand, Line
from openbell.indicators.lines import beyond_the_last, shifted_later
from openbell.indicators.spec import Indicator, LinePair, Parameter, Unit
from openbell.indicators.windows import middle
from openbell.market.bars import Bars, Values


def _shifted_earlier(values: Values, by: int) -> Values:
    out = np.full(len(values), np.nan)
    out[: max(0, len(values) - by)] = values[by:]
    return out


def _compute(bars: Bars, conversion: int, base: int, span: int, displacement: int) -> Channels:
    by = displacement - 1
    fast = middle(bars.high, bars.low, conversion)
    slow = middle(bars.high, bars.low, base)
    leading = ((fast + slow) / 2.0, middle(bars.high, bars.low, span))
    span_a, span_b = (shifted_later(values, by) for values in leading)
    ahead_a, ahead_b = (beyond_the_last(values, by) for values in leading)
    return Channels(
        lines=(
            Line("Conversion", fast),
            Line("Base", slow),
            Line("Span A", span_a, ahead_a),
            Line("Span B", span_b, ahead_b),
            Line("Lagging", _shifted_earlier(bars.close, by)),
        ),
        fills=(FilledBand(span_a, span_b, (ahead_a, ahead_b)),),
    )


INDICATOR = Indicator(
    name="ichimoku",
    title="Ichimoku",
    description="Conversion and base line, the cloud between two spans drawn ahead, and the close drawn behind",
    brief="Conversion and base line, cloud ahead, close behind",
    overlay=True,
    compute=_compute,
    warmup=lambda conversion, base, span, displacement: max(conversion, base, span) + displacement - 1,
    parameters=(
        Parameter(
            "conversion",
            9,
            1,
            500,
            aliases=(
                "tenkan",
                "conversion_length",
                "conversion_periods",
                "conversion_line_length",
                "conversion_line_periods",
            ),
        ),
        Parameter(
            "base",
            26,
            1,
            500,
            aliases=("kijun", "base_length", "base_periods", "base_line_length", "base_line_periods"),
        ),
        Parameter(
            "span",
            52,
            1,
            500,
            aliases=("senkou", "senkou_b", "span_length", "leading_span_b_length", "leading_span_b_periods"),
        ),
        Parameter("displacement", 26, 1, 500, aliases=("lagging_span",)),
    ),
    aliases=("ichi", "ichimoku_cloud"),
    inputs=("high", "low", "close"),
    displaced=("Lagging",),
    settles=1,
    crosses=(LinePair("Conversion", "Base", Unit.PRICE),),
)
