"""A chart as numbers, in the contract's shapes: the summary (last values) and the series (all bars).

Values of indicators leave with 10 significant digits, prices with their own. An index of a bar comes with the bar's time: in
the summary as `time` (ISO 8601), in the series as the contract's `t` (seconds).
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np

from openbell.charts.comparisons import (
    close_against,
    crossing_fields,
    largest_fall,
    price_lines,
    price_range,
    significant_change,
)
from openbell.indicators.channels import Channels, Level, Segment, Signal
from openbell.indicators.evaluation import Computed
from openbell.market.bars import Bars, Values, total
from openbell.market.clock import iso
from openbell.market.digit_columns import significant_column, volumes_of
from openbell.market.digits import significant, volume

MOST_MARKS = 30
"""Signals of an indicator in a summary, and lines between bars: session profiles alone would fill 5,000 tokens."""
Times = Callable[[int, str], dict[str, Any]]
"""Returns the field with the time of a bar, beside the index; the second argument is the number of the index: `1` of x1."""


def summary(
    symbol: str, interval: str, bars: Bars, indicators: list[Computed], whole: Bars, *, native: bool = False
) -> dict[str, Any]:
    """Returns statistics of the bars, and the last values, signals, levels and crossings of each indicator.

    `whole` are all bars that the indicators were computed on: an older cross is found there. `native`: the bars were not
    made of finer ones.
    """
    return {
        "symbol": symbol,
        "interval": interval,
        "price": _price(bars, native),
        "indicators": {each.request.key: last_values(each, bars) for each in indicators},
        **crossing_fields(whole, len(bars), indicators),
    }


def _price(bars: Bars, native: bool) -> dict[str, Any]:
    """Returns statistics of the bars. `change_over` is what `change_pct` is measured over.

    It has the opening times of the bars whose open and close are compared, as `first` and `last` have them.
    """
    first, last = 0, len(bars) - 1
    opened, closed = float(bars.open[first]), float(bars.close[last])
    return {
        "bars": len(bars),
        "first": {"date": _date(bars, first), "open": opened, "close": float(bars.close[first])},
        "last": {
            "date": _date(bars, last),
            "open": float(bars.open[last]),
            "high": float(bars.high[last]),
            "low": float(bars.low[last]),
            "close": closed,
            "volume": float(volumes_of(bars.take(slice(last, None)), native=native)[0]),
        },
        "range": price_range(bars),
        "total_volume": volume(total(bars.volume)),
        "change_pct": significant_change(opened, closed),
        "drawdown": largest_fall(bars),
        "change_over": {"bars": len(bars), "from_open": _date(bars, first), "to_close": _date(bars, last)},
    }


def _date(bars: Bars, index: int) -> str:
    return iso(int(bars.time[index]))


def last_values(computed: Computed, bars: Bars) -> dict[str, Any]:
    """Returns one indicator of a summary of these bars, without the channels that it does not have."""
    channels = computed.channels
    shape = _head(computed)
    prices = price_lines(computed)
    for name, lines in (("lines", channels.lines), ("histogram", channels.histogram)):
        if lines:
            shape[name] = [
                {
                    "index": index,
                    "label": line.label,
                    "last_value": _last(line.values),
                    "previous_value": _last(line.values[:-1]),
                    **(close_against(line.values, bars) if name == "lines" and line.label in prices else {}),
                }
                for index, line in enumerate(lines)
            ]
    marks = _marks(channels, lambda index, number: {f"time{number}": _date(bars, index)})
    return shape | marks | _newest("signals", marks, "x") | _newest("divlines", marks, "x2")


def _newest(name: str, marks: dict[str, Any], index: str) -> dict[str, Any]:
    """Returns the newest marks of a long list and its length; nothing for a list that stays whole."""
    items: list[dict[str, Any]] = marks.get(name, [])
    if len(items) <= MOST_MARKS:
        return {}
    newest = sorted(range(len(items)), key=lambda place: items[place][index])[-MOST_MARKS:]
    return {name: [items[place] for place in sorted(newest)], f"{name}_total": len(items)}


def series(
    symbol: str, interval: str, bars: Bars, indicators: list[Computed], *, native: bool = False
) -> dict[str, Any]:
    """Returns all bars and the values of each indicator at each bar; null before warm-up.

    `native`: the bars were not made of finer ones.
    """
    columns = (bars.time, bars.open, bars.high, bars.low, bars.close, volumes_of(bars, native=native))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {
        "symbol": symbol,
        "interval": interval,
        "bars": [{"t": t, "o": o, "h": h, "l": low, "c": c, "v": v} for t, o, h, low, c, v in rows],
        "indicators": {each.request.key: _all_values(each, bars) for each in indicators},
    }


def _all_values(computed: Computed, bars: Bars) -> dict[str, Any]:
    channels = computed.channels
    shape = _head(computed)
    for name, lines in (("lines", channels.lines), ("histogram", channels.histogram)):
        if lines:
            shape[name] = [
                {"index": index, "label": line.label, "values": _nullable(line.values)}
                for index, line in enumerate(lines)
            ]
    if channels.fills:
        shape["fills"] = [{"y1": _nullable(fill.upper), "y2": _nullable(fill.lower)} for fill in channels.fills]
    if hbars := _hbars(channels):
        shape["hbars"] = hbars
    time = bars.time.tolist()
    return shape | _marks(channels, lambda index, number: {f"t{number}": time[index]})


def _head(computed: Computed) -> dict[str, Any]:
    shape: dict[str, Any] = {"label": computed.request.label, "is_overlay": computed.request.indicator.overlay}
    if computed.channels.y_range and all(map(isfinite, computed.channels.y_range)):
        shape["y_range"] = [significant(each) for each in computed.channels.y_range]
    if computed.note:
        shape["note"] = computed.note
    return shape


# Lines have null if a value is not finite. The contract does not allow null in the other channels, so items with values that
# are not finite are left out.


def _marks(channels: Channels, time: Times) -> dict[str, Any]:
    """Returns signals, lines between bars, and levels, each index with its bar's time."""
    shape: dict[str, Any] = {}
    if signals := [_signal(each, time) for each in channels.signals if isfinite(each.value)]:
        shape["signals"] = signals
    if divlines := [_divline(each, time) for each in channels.divlines if isfinite(each.y1) and isfinite(each.y2)]:
        shape["divlines"] = divlines
    if levels := [_level(each, time) for each in channels.hlines if isfinite(each)]:
        shape["hlines"] = levels
    return shape


def _signal(signal: Signal, time: Times) -> dict[str, Any]:
    shape = {"x": signal.index, **time(signal.index, ""), "y": significant(signal.value), "label": signal.label}
    if signal.extreme is None:
        return shape
    return {
        **shape,
        "extreme_x": signal.extreme,
        **{f"extreme_{name}": at for name, at in time(signal.extreme, "").items()},
    }


def _divline(line: Segment, time: Times) -> dict[str, Any]:
    shape = {"x1": line.x1, **time(line.x1, "1"), "y1": significant(line.y1)}
    shape |= {"x2": line.x2, **time(line.x2, "2"), "y2": significant(line.y2), "dashed": line.dashed}
    return {**shape, "label": line.label} if line.label else shape


def _level(level: Level, time: Times) -> dict[str, Any]:
    shape = {"y": significant(level), "label": level.label}
    return shape if level.index is None else {"x": level.index, **time(level.index, ""), **shape}


def _hbars(channels: Channels) -> list[dict[str, Any]]:
    if not channels.hbars:
        return []
    table = np.array([bar[:4] for bar in channels.hbars], dtype=np.float64)
    finite: Any = np.isfinite(table).all(axis=1).tolist()
    rows: Any = significant_column(table.ravel()).reshape(table.shape).tolist()
    return [
        {"y": y, "height": height, "width": width, "offset": offset, "left": bar.left}
        for (y, height, width, offset), bar, fine in zip(rows, channels.hbars, finite, strict=True)
        if fine
    ]


def _last(values: Values) -> float | None:
    value = float(values[-1]) if len(values) else float("nan")
    return significant(value) if isfinite(value) else None


def _nullable(values: Values) -> list[float | None]:
    good = np.isfinite(values)
    plain = significant_column(values).tolist()
    if good.all():
        return plain  # type: ignore[no-any-return]
    return [value if fine else None for value, fine in zip(plain, good.tolist(), strict=True)]
