"""Hints at the zone of times that were taken as UTC: the hours in which a market is open look like those of another zone."""

from __future__ import annotations

import numpy as np

from openbell.market.bars import Bars
from openbell.market.instruments import AssetClass

_HOUR, _DAY = 3600, 86400
_MONDAY, _FRIDAY, _SATURDAY = 0, 4, 5
_LATEST_CLOSE = 22 * _HOUR
"""Seconds after midnight UTC at which currencies close on Fridays in winter."""

_BROKER = (
    "the bars run from Monday 00:00 to Friday 24:00, none on Sunday, which looks like broker time (New York + 7 hours): "
    "if it is, add --tz America/New_York+7"
)


def hints(bars: Bars) -> list[str]:
    """Returns what to add to the command if times without a zone, taken as UTC, look like those of another zone."""
    if not bars.timeframe.intraday or len(bars) < 2:
        return []
    if bars.instrument.asset_class is AssetClass.STOCK and _are_of_new_york(bars):
        return ["the times look like New York's: if they are, add --tz America/New_York"]
    if bars.instrument.asset_class is AssetClass.FOREX and _are_of_a_broker(bars):
        return [_BROKER]
    return []


def _are_of_new_york(bars: Bars) -> bool:
    """Returns True if nearly all bars are within the regular hours of New York."""
    minute = bars.time % _DAY // 60
    return bool(np.mean((minute >= 570) & (minute <= 960)) > 0.9 and minute.min() < 780)


def _are_of_a_broker(bars: Bars) -> bool:
    """Returns True if the weeks begin on Monday at midnight, and end on Friday later than they do in UTC."""
    day, second = np.divmod(bars.time, _DAY)
    weekday = (day + 3) % 7  # 1970-01-01 was a Thursday
    at_begin = (weekday == _MONDAY) & (second < _HOUR)
    at_end = (weekday == _FRIDAY) & (second + bars.timeframe.seconds > _LATEST_CLOSE + _HOUR)
    return bool(at_begin.any() and at_end.any() and not (weekday >= _SATURDAY).any())
