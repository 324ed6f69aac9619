"""Session volume profile: one profile per session, drawn at the session's bars."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from openbell.indicators.channels import Channels
from openbell.indicators.profiles import SESSION_PARAMETERS, PriceRows, by_session
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.value_area import value_area
from openbell.market.bars import Bars, Values

MAX_SESSIONS = 100
"""Only the latest sessions are drawn: with more, each would be narrower than a candle."""
_WIDEST = 0.7
"""Width of the longest row, as a share of its session's width."""


def _compute(bars: Bars, bins: int, session: str, show_value_area: bool) -> Channels:
    sessions = by_session(bars, session).latest(MAX_SESSIONS)
    rows = PriceRows(sessions, bins)
    profiles = rows.spread(sessions.bars.volume)
    if not profiles.any():
        return Channels()
    largest = profiles.max(axis=1, keepdims=True)
    begin, end = (place[:, None] / len(bars) for place in (sessions.first, sessions.last + 1))
    widths = np.divide(profiles, largest, out=np.zeros(profiles.shape), where=largest > 0.0)
    hbars = rows.horizontal_bars(_WIDEST * (end - begin) * widths, begin, True)
    return Channels(hbars=tuple(hbars), hlines=_levels(rows, profiles, show_value_area))


def _levels(rows: PriceRows, profiles: Values, show_value_area: bool) -> tuple[float, ...]:
    """The point of control of the latest session, and the upper and lower end of its value area."""
    if not profiles[-1].any():
        return ()
    newest = len(profiles) - 1
    fullest = int(np.argmax(profiles[-1]))
    control = rows.price(fullest, newest)
    if not show_value_area:
        return (control,)
    first, last = value_area([0.0, *accumulate(profiles[-1].tolist())], fullest)
    return control, rows.price(last + 0.5, newest), rows.price(first - 0.5, newest)


INDICATOR = Indicator(
    name="session_vp",
    title="SVP",
    description="Volume at each price, one profile per session; the newest one's point of control and value area as levels",
    overlay=True,
    profile=True,
    compute=_compute,
    warmup=lambda **_: 1,
    parameters=(*SESSION_PARAMETERS, Parameter("show_value_area", True)),
    aliases=("svp",),
    inputs=("high", "low", "volume"),
)
