"""Andersen's standard error bands: the end of the least-squares line, averaged, and averaged standard errors around it."""

from __future__ import annotations

from openbell.indicators.averages import METHOD, average_by
from openbell.indicators.catalogue.std_error import error_per_deviation
from openbell.indicators.channels import Channels, FilledBand, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import regression
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int, errors: float, average: int, method: str) -> Channels:
    end, deviation, _ = regression(bars.close, length)
    middle = average_by(end, average, method)
    width = errors * error_per_deviation(length) * average_by(deviation, average, method)
    lines = (Line("upper", middle + width), Line("middle", middle), Line("lower", middle - width))
    return Channels(lines=lines, fills=(FilledBand(lines[0].values, lines[2].values),))


INDICATOR = Indicator(
    name="std_error_bands",
    title="Std Error Bands",
    description="Averaged end of the least-squares line through the closes, and averaged standard errors around it",
    brief="Least-squares line with standard errors around it",
    overlay=True,
    compute=_compute,
    warmup=lambda length, errors, average, method: length + average - 1,  # noqa: ARG005 - takes every parameter
    parameters=(
        Parameter("length", 21, 3, 500),
        Parameter("errors", 2.0, 0.1, 10.0),
        Parameter("average", 3, 1, 100),
        METHOD,
    ),
    aliases=("standard_error_bands",),
)
