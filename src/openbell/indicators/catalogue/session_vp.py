"""Session volume profile: one profile per session, drawn at the session's bars, with its point of control and value area.

Where one bar is a session, profiles come from finer bars: within one bar the volume is the same at each price. Without finer
bars there is no profile and no level.
"""

from __future__ import annotations

from openbell.indicators.channels import Channels
from openbell.indicators.profiles import (
    MAX_SESSIONS,
    SESSION_PARAMETERS,
    PriceRows,
    finer_bars,
    profiled_sessions,
    session_channels,
)
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, finer: Bars | None, bins: int, session: str, show_value_area: bool) -> Channels:
    sessions = profiled_sessions(bars, session, finer)
    rows = PriceRows(sessions, bins)
    return session_channels(sessions, rows, rows.spread(sessions.bars.volume), len(bars), value_area=show_value_area)


INDICATOR = Indicator(
    name="session_vp",
    title="SVP",
    description="Volume at each price, one profile per session, each with its point of control and value area",
    brief="Volume at each price, one profile per session",
    overlay=True,
    profile=True,
    compute=_compute,
    warmup=lambda **_: 1,
    parameters=(*SESSION_PARAMETERS, Parameter("show_value_area", True)),
    aliases=("svp", "session_volume_profile"),
    inputs=("high", "low", "volume"),
    finer=lambda timeframe, session, **_: finer_bars(timeframe, session, MAX_SESSIONS),
    differs=(
        "Of a stock only regular hours count. Where one bar is a session, the profiles of the latest 100 come from finer "
        "bars; a session without finer bars has no profile, and a note in the result."
    ),
)
