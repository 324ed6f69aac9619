"""Naked points of control: the prices with the most volume of earlier sessions that no later bar has touched."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels
from openbell.indicators.profiles import SESSION_PARAMETERS, PriceRows, by_session
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, bins: int, session: str, max_sessions: int) -> Channels:
    sessions = by_session(bars, session)
    unfinished = int((sessions.last[-1:] == len(bars) - 1).sum())
    sessions = sessions.latest(max_sessions + unfinished)
    rows = PriceRows(sessions, bins)
    hbars, hlines = [], []
    for number, traded in enumerate(rows.spread(sessions.bars.volume)[: len(sessions) - unfinished]):
        later = slice(int(sessions.last[number]) + 1, None)
        row = int(np.argmax(traded))
        price = rows.price(row, number)
        if traded[row] and not ((bars.low[later] <= price) & (price <= bars.high[later])).any():
            offset = float(sessions.first[number]) / len(bars)
            hlines.append(price)
            hbars.append(rows.thin_bar(row, 1.0 - offset, offset, True, number))
    return Channels(hbars=tuple(hbars), hlines=tuple(hlines))


INDICATOR = Indicator(
    name="naked_poc",
    title="nPOC",
    description="Points of control of earlier sessions that no later bar has touched, as levels",
    overlay=True,
    profile=True,
    compute=_compute,
    warmup=lambda **_: 1,
    parameters=(*SESSION_PARAMETERS, Parameter("max_sessions", 20, 1, 250)),
    aliases=("npoc",),
    inputs=("high", "low", "volume"),
)
