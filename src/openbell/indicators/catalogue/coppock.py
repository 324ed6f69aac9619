"""Coppock curve: the linearly weighted average of the sum of a long and a short rate of change of the close."""

from __future__ import annotations

from openbell.indicators.averages import linear_weights
from openbell.indicators.catalogue.roc import roc
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import weighted_sum
from openbell.market.bars import Bars


def _compute(bars: Bars, wma_length: int, long_roc: int, short_roc: int) -> Channels:
    rates = roc(bars.close, long_roc) + roc(bars.close, short_roc)
    return Channels(lines=(Line("Coppock", weighted_sum(rates, linear_weights(wma_length))),), hlines=(ZERO,))


INDICATOR = Indicator(
    name="coppock",
    title="Coppock",
    description="Coppock curve: weighted average of the sum of a long and a short rate of change",
    brief="Coppock curve: weighted average of two rates of change",
    overlay=False,
    compute=_compute,
    warmup=lambda wma_length, long_roc, short_roc: wma_length + max(long_roc, short_roc),
    parameters=(
        Parameter("wma_length", 10, 1, 300),
        Parameter("long_roc", 14, 1, 500, aliases=("long_roc_length",)),
        Parameter("short_roc", 11, 1, 500, aliases=("short_roc_length",)),
    ),
    aliases=("coppock_curve",),
)
