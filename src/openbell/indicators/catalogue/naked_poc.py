"""Naked points of control: the prices with the most volume of earlier sessions that no later bar has touched.

Where one bar is a session, they come from finer bars; without those there is none.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, Level
from openbell.indicators.float_ties import at_least, at_most
from openbell.indicators.profiles import SESSION_PARAMETERS, PriceRows, control_row, finer_bars, profiled_sessions
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, finer: Bars | None, bins: int, session: str, max_sessions: int) -> Channels:
    sessions = profiled_sessions(bars, session, finer)
    unfinished = int((sessions.last[-1:] == len(bars) - 1).sum())
    sessions = sessions.latest(max_sessions + unfinished)
    rows = PriceRows(sessions, bins)
    hbars, hlines = [], []
    for number, traded in enumerate(rows.spread(sessions.bars.volume)[: len(sessions) - unfinished]):
        later = slice(int(sessions.last[number]) + 1, None)
        row = int(control_row(traded, float(traded.sum())))
        price = rows.price(row, number)
        touched = at_most(bars.low[later], price, price) & at_least(bars.high[later], price, price)
        if traded[row] and not np.any(touched):
            offset = float(sessions.first[number]) / len(bars)
            hlines.append(Level(price, "nPOC", int(sessions.first[number])))
            hbars.append(rows.thin_bar(row, 1.0 - offset, offset, True, number))
    return Channels(hbars=tuple(hbars), hlines=tuple(hlines))


INDICATOR = Indicator(
    name="naked_poc",
    title="nPOC",
    description="Points of control of earlier sessions that no later bar has touched, as levels",
    brief="Points of control that no later bar has touched",
    overlay=True,
    profile=True,
    compute=_compute,
    warmup=lambda **_: 1,
    parameters=(*SESSION_PARAMETERS, Parameter("max_sessions", 20, 1, 250)),
    aliases=("npoc",),
    inputs=("high", "low", "volume"),
    finer=lambda timeframe, session, max_sessions, **_: finer_bars(timeframe, session, max_sessions + 1),
    differs=(
        "Of a stock only regular hours count. Where one bar is a session, its profile comes from finer bars; a session "
        "without finer bars has none, and a note in the result."
    ),
)
