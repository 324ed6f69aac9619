"""Market profile: the number of half-hour periods in which each price was traded, one profile per session.

Its point of control and value area are those of the counts. For a stock only regular hours count. Bars longer than half an
hour are divided into finer ones. Where there are none, a bar is one period; if one bar is a session, it has no profile.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from openbell.indicators.channels import Channels
from openbell.indicators.profiles import (
    MAX_SESSIONS,
    WIDEST,
    PriceRows,
    Sessions,
    by_session,
    finer_bars,
    one_session,
    profiled_sessions,
    session_channels,
)
from openbell.indicators.spec import Finer, Indicator, Parameter
from openbell.market.bars import Bars
from openbell.market.timeframes import Timeframe

_PERIOD = Timeframe.M30
"""Sessions begin at whole or half hours."""
_PERIODS = (_PERIOD, Timeframe.H1, Timeframe.H4)
_SESSIONS = ("daily", "weekly", "all")


def _sessions(bars: Bars, kind: str, finer: Bars | None) -> Sessions:
    """The periods of each session, with the places of its first and last bar among the bars shown."""
    if kind == "all":
        kind = "daily"
    elif finer_bars(bars.timeframe, kind, 0):
        return profiled_sessions(bars, kind, finer)
    if finer is None or not len(finer):
        return by_session(bars, kind)
    inside = finer.take(finer.time >= bars.time[0])
    found = by_session(inside, kind)
    first, last = (np.searchsorted(bars.time, inside.time[at], side="right") - 1 for at in (found.first, found.last))
    return replace(found, first=first, last=last)


def _compute(bars: Bars, finer: Bars | None, bins: int, side: str, session: str) -> Channels:
    sessions = _sessions(bars, session, finer)
    if not len(sessions):
        return Channels()
    periods = (sessions.bars.time // _PERIOD.seconds).astype(np.intp)
    if session != "all":
        rows = PriceRows(sessions, bins)
        return session_channels(sessions, rows, rows.visits(periods), len(bars), left=side == "left")
    rows = PriceRows(one_session(sessions.bars), bins)
    visits = rows.visits(periods)
    hbars = rows.horizontal_bars(WIDEST / visits.max() * visits, 0.0, side == "left")
    return Channels(hbars=tuple(hbars), hlines=rows.levels(visits[0]))


def _finer(timeframe: Timeframe, **_: object) -> Finer | None:
    shorter = tuple(each for each in _PERIODS if each.seconds < timeframe.seconds)
    count = max(1, MAX_SESSIONS * Timeframe.D1.seconds // timeframe.seconds)
    return Finer(shorter, count, "periods of half an hour come from finer bars") if shorter else None


INDICATOR = Indicator(
    name="tpo",
    title="TPO",
    description=(
        "Time price opportunities: half-hour periods that came by each price, one profile per session with its point of "
        "control and value area"
    ),
    brief="Time price opportunities: half hours at each price",
    overlay=True,
    profile=True,
    compute=_compute,
    warmup=lambda **_: 1,
    parameters=(
        Parameter("bins", 32, 1, 500),
        Parameter("side", "right", choices=("right", "left")),
        Parameter("session", _SESSIONS[0], choices=_SESSIONS),
    ),
    aliases=("market_profile",),
    inputs=("high", "low"),
    finer=_finer,
    differs=(
        'With `session` "all" the sessions of all bars shown are one profile at the edge of the chart. Of a stock only '
        "regular hours count. Where there are no bars of half an hour or less, a longer bar is one period, and a bar that "
        "is a session has no profile. Of longer bars the latest 100 days are counted."
    ),
)
