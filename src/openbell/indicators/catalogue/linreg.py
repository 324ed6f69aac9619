"""Linear regression: the end point of the least-squares line through the latest closes."""

from __future__ import annotations

from openbell.indicators.averages import linear_weights, weighted_average
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _weights(length: int) -> list[float]:
    """The end point of the line is three times the weighted average less twice the simple one."""
    return [3.0 * weight - 2.0 / length for weight in linear_weights(length)]


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("LinReg", weighted_average(bars.close, _weights(length))),))


INDICATOR = Indicator(
    name="linreg",
    title="LinReg",
    description="End point of the least-squares line through the newest closes",
    brief="End of the least-squares line through the closes",
    overlay=True,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 25, 2, 1000),),
    aliases=("lsma", "least_squares_moving_average", "linear_regression", "linear_regression_curve"),
    settles=1,
)
