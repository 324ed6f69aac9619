"""SMI ergodic oscillator: the ergodic indicator less its signal."""

from __future__ import annotations

from openbell.indicators.catalogue.smi_ergodic import PARAMETERS, ergodic, warmup
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator
from openbell.market.bars import Bars


def _compute(bars: Bars, short: int, long: int, signal: int) -> Channels:
    line, trigger = ergodic(bars.close, short, long, signal)
    return Channels(histogram=(Line("Histogram", line - trigger),), hlines=(ZERO,))


INDICATOR = Indicator(
    name="smi_oscillator",
    title="SMI Oscillator",
    description="The SMI ergodic indicator less its signal, as histogram",
    overlay=False,
    compute=_compute,
    warmup=warmup,
    parameters=PARAMETERS,
    aliases=("smio", "smi_ergodic_oscillator"),
    differs="While the price does not move it is 0, where TradingView has no value.",
)
