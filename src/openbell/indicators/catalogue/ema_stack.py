"""Four exponential averages of the close, from fast to slow. Their order shows the trend."""

from __future__ import annotations

from openbell.indicators.averages import ema
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, fast: int, medium: int, slow: int, trend: int) -> Channels:
    lengths = {"fast": fast, "medium": medium, "slow": slow, "trend": trend}
    return Channels(lines=tuple(Line(label, ema(bars.close, length)) for label, length in lengths.items()))


INDICATOR = Indicator(
    name="ema_stack",
    title="EMA Stack",
    description="Four exponential moving averages of the close, from fast to slow",
    brief="Four exponential moving averages, from fast to slow",
    overlay=True,
    compute=_compute,
    warmup=lambda **lengths: max(lengths.values()),
    parameters=(
        Parameter("fast", 8, 1, 1000),
        Parameter("medium", 21, 1, 1000),
        Parameter("slow", 50, 1, 1000),
        Parameter("trend", 200, 1, 1000),
    ),
    aliases=("ema",),
    elsewhere={"length": "ema_line", "period": "ema_line"},
)
