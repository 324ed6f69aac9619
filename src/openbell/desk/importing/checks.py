"""Checks the bars of a file: impossible values, two bars of one time, the last bar if it has not closed, and the zone.

The hours in which a market is open tell of times that were taken as UTC whether they look like those of another zone.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from openbell.desk.importing.layout import SHOWN
from openbell.desk.importing.rows import Faults
from openbell.market import bars as barlib
from openbell.market.bars import Bars, bucket_bounds
from openbell.market.clock import iso
from openbell.market.instruments import AssetClass
from openbell.market.plural import counted
from openbell.market.session_table import Times
from openbell.market.trading_days import currency_days_at

_DAY = 86400
_LONGEST = 8 * _DAY
"""Seconds. A bar ends at most so long after it begins."""
_ROUNDING = 1e-12
"""The largest relative difference that is taken for the rounding of a float."""
_HOUR = 3600
_MONDAY, _FRIDAY, _SATURDAY = 0, 4, 5
_LATEST_CLOSE = 22 * _HOUR
"""Seconds after midnight UTC at which currencies close on Fridays in winter."""
_BROKER = (
    "the bars run from Monday 00:00 to Friday 24:00, none on Sunday, which looks like broker time (New York + 7 hours): "
    "if it is, add --tz America/New_York+7"
)


def without_unclosed(bars: Bars, places: Times, faults: Faults, now: float, notes: list[str]) -> tuple[Bars, Times]:
    """Returns the rows that have closed. The latest bar may still be open: it is left out. Others are faults."""
    # A stock's day is dated before its session begins.
    dated = not bars.timeframe.intraday and bars.instrument.asset_class is AssetClass.STOCK
    begins = bars.time - bars.time % _DAY if dated else bars.time
    future = begins > now
    recent = np.flatnonzero((bars.time > now - _LONGEST) & ~future)
    if not len(recent) and not future.any():
        return bars, places
    faults.add("from the future", places[future])
    keep = ~future
    recent = recent[np.argsort(bars.time[recent], kind="stable")]
    end = bucket_bounds(bars.instrument, bars.timeframe, bars.time[recent])[1]
    if len(still_open := recent[end > now]):
        keep[still_open] = False
        notes.append(f"the last bar, {iso(int(bars.time[still_open[-1]]))}, has not closed and was left out")
    return (bars, places) if keep.all() else (bars.take(keep), places[keep])


def checked(rows: Bars, places: Times, faults: Faults) -> Bars:
    """Returns the rows as sorted bars. Adds impossible values and differing bars of the same time to `faults`."""
    rows = _without_rounding(rows)
    good = np.ones(len(rows), dtype=bool)
    for reason, mask in barlib.faults(rows, math.inf):
        faults.add(reason, places[mask])
        good &= ~mask
    if bool((rows.time[1:] > rows.time[:-1]).all()):
        return rows
    _compare_doubles(rows.take(good), places[good], faults)
    return barlib.sort(rows)


def without_flat_weekends(bars: Bars, notes: list[str]) -> Bars:
    """Returns sorted bars without those of forex that lie in a weekend and in which nothing was traded.

    Dukascopy repeats the last price through the weekend: such bars would enter every average. A bar of a weekend with
    another price or a volume is kept.
    """
    if bars.instrument.asset_class is not AssetClass.FOREX or not bars.timeframe.intraday or not len(bars):
        return bars
    flat = (bars.high == bars.low) & (bars.volume == 0)
    left_out = flat & (currency_days_at(bars.time, bars.timeframe.seconds) < 0)
    if not (count := int(left_out.sum())):
        return bars
    notes.append(f"{counted(count, 'flat bar')} without volume while the market is closed: left out")
    return bars.take(~left_out)


def _without_rounding(rows: Bars) -> Bars:
    """Returns bars whose high and low hold open and close, where only the last digit of a float kept them out.

    Files of adjusted prices have such rows: each price was multiplied and rounded on its own.
    """
    with np.errstate(invalid="ignore"):
        top, bottom = np.maximum(rows.open, rows.close), np.minimum(rows.open, rows.close)
        high = np.where((top > rows.high) & (top - rows.high <= _ROUNDING * top), top, rows.high)
        low = np.where((bottom < rows.low) & (rows.low - bottom <= _ROUNDING * rows.low), bottom, rows.low)
    if np.array_equal(high, rows.high) and np.array_equal(low, rows.low):
        return rows
    return dataclasses.replace(rows, high=high, low=low)


def _compare_doubles(rows: Bars, places: Times, faults: Faults) -> None:
    """Add a fault for each bar that differs from an earlier one of the same time. Equal rows are allowed."""
    order = np.argsort(rows.time, kind="stable")
    times = rows.time[order]
    again = np.append(False, times[1:] == times[:-1])[: len(times)]
    if not again.any():
        return
    original = np.maximum.accumulate(np.where(again, 0, np.arange(len(times))))
    differs = np.zeros(len(times), dtype=bool)
    for column in rows.columns()[1:]:
        values = column[order]
        differs |= values != values[original]
    found = np.flatnonzero(differs)
    found = found[np.argsort(places[order][found])]
    texts = [
        f"another bar of {iso(int(times[at]))} than {faults.place} {places[order[original[at]]]}"
        for at in found[:SHOWN].tolist()
    ]
    faults.add("two bars of one time", places[order][found], texts)


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
