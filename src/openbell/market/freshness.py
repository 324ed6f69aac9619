"""The age of a price in trading time.

A stock's Friday close is not stale on Sunday, because the market has not been open since. Only regular hours count, because
extended hours may have no trades for a long time.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from openbell.market.instruments import AssetClass, Instrument
from openbell.market.session_table import table_for
from openbell.market.sessions import eastern, forex_open

_FRIDAY, _SUNDAY = 4, 6
_CLOSE_HOUR = 17


def trading_seconds(instrument: Instrument, start: float, end: float) -> float:
    """Returns the seconds of [start, end) in which the instrument's market was open, in regular hours."""
    if end <= start:
        return 0.0
    if instrument.asset_class is AssetClass.CRYPTO:
        return end - start
    if instrument.asset_class is AssetClass.FOREX:
        return _forex_seconds(start, end)
    sessions = table_for(start, end)
    overlap = sessions.close.clip(start, end) - sessions.open.clip(start, end)
    return float(overlap.clip(0).sum())


def _forex_seconds(start: float, end: float) -> float:
    total, at = 0.0, start
    while at < end:
        is_open = forex_open(at)
        change = _next(eastern(at), _FRIDAY if is_open else _SUNDAY).timestamp()
        total += min(end, change) - at if is_open else 0.0
        at = change
    return total


def _next(moment: datetime, weekday: int) -> datetime:
    """Returns the first 17:00 in New York on this weekday after `moment`."""
    day = moment + timedelta(days=(weekday - moment.weekday()) % 7)
    found = day.replace(hour=_CLOSE_HOUR, minute=0, second=0, microsecond=0)
    return found if found > moment else found + timedelta(days=7)
