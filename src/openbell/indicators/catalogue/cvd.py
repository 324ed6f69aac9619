"""Cumulative volume delta: the running total of buys less sells, which restarts with every session.

For a stock, bars outside of regular hours are a session of their own. With `reset` "never" the total runs on from the first
bar.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.regular_hours import day_starts, day_sums, session_days
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars, Values
from openbell.market.extras import Extra


def cvd(bars: Bars, delta: Extra, by_session: bool) -> Values:
    """NaN before the first bar with order flow."""
    flow = delta.sum_in(bars)
    known = np.nan_to_num(flow)
    total = day_sums(known, day_starts(session_days(bars))) if by_session else np.cumsum(known)
    return np.where(np.isnan(flow), np.nan, total)


def _compute(bars: Bars, delta: Extra, reset: str) -> Channels:
    return Channels(lines=(Line("CVD", cvd(bars, delta, reset == "session")),), hlines=(ZERO,))


INDICATOR = Indicator(
    name="cvd",
    title="CVD",
    description="Cumulative volume delta: buys less sells since the session began",
    brief="Cumulative volume delta since the session began",
    overlay=False,
    compute=_compute,
    warmup=lambda reset: 1,  # noqa: ARG005 - takes every parameter
    parameters=(Parameter("reset", "session", choices=("session", "never")),),
    cumulative=True,
    needs=("delta",),
    differs="TradingView estimates buys and sells from the bars of a shorter timeframe; here they are those of the feed.",
)
