"""Money flow index: an RSI weighted by turnover."""

from __future__ import annotations

from openbell.indicators.channels import Channels, Line, bounds
from openbell.indicators.oscillators import money_flow_index
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(
        lines=(Line("MFI", money_flow_index(bars, length)),),
        hlines=bounds(20.0, 80.0),
        y_range=(0.0, 100.0),
    )


INDICATOR = Indicator(
    name="mfi",
    title="MFI",
    description="Share of the turnover on bars whose typical price rose, of that on bars where it rose or fell",
    brief="Money flow index: share of turnover on rising bars",
    overlay=False,
    compute=_compute,
    warmup=lambda length: length,
    parameters=(Parameter("length", 14, 1, 500, aliases=("period",)),),
    aliases=("money_flow_index",),
    inputs=("high", "low", "close", "volume"),
    differs="It is 50 if no bar of the window rose or fell, where TradingView has 100.",
)
