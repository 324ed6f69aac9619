"""Keltner channels: the exponential average, plus and minus a multiple of the average true range.

Not TA-Lib's KC: its average range does not include the first bar.
"""

from __future__ import annotations

from openbell.indicators.averages import ema
from openbell.indicators.catalogue.atr import atr
from openbell.indicators.channels import Channels, FilledBand, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars, Values


def keltner(bars: Bars, length: int, multiplier: float, atr_length: int) -> tuple[Values, Values, Values]:
    """Upper, middle and lower line."""
    middle = ema(bars.close, length)
    width = multiplier * atr(bars, atr_length)
    return middle + width, middle, middle - width


def _compute(bars: Bars, length: int, multiplier: float, atr_length: int) -> Channels:
    upper, middle, lower = keltner(bars, length, multiplier, atr_length)
    return Channels(
        lines=(Line("upper", upper), Line("middle", middle), Line("lower", lower)), fills=(FilledBand(upper, lower),)
    )


INDICATOR = Indicator(
    name="keltner",
    title="KC",
    description="Keltner channels: exponential average of the close and average true ranges around it",
    brief="Keltner channels: EMA of the close, true ranges around it",
    overlay=True,
    compute=_compute,
    warmup=lambda length, multiplier, atr_length: max(length, atr_length),  # noqa: ARG005 - takes every parameter
    parameters=(
        Parameter("length", 20, 1, 500, aliases=("period",)),
        Parameter("multiplier", 1.5, 0.1, 20.0, aliases=("mult",), tradingview=2.0),
        Parameter("atr_length", 10, 1, 500),
    ),
    aliases=("kc", "keltner_channels"),
    inputs=("high", "low", "close"),
)
