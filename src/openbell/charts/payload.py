"""A chart as numbers, in the contract's shapes: the summary (last values) and the series (all bars)."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite
from typing import Any

import numpy as np

from openbell.indicators.channels import Channels, Segment, Signal
from openbell.indicators.evaluation import Computed
from openbell.market.bars import Bars, Values, total


def summary(symbol: str, interval: str, bars: Bars, indicators: list[Computed]) -> dict[str, Any]:
    """Returns statistics of the bars, and the last values, signals and levels of each indicator."""
    return {
        "symbol": symbol,
        "interval": interval,
        "price": _price(bars),
        "indicators": {each.request.key: last_values(each) for each in indicators},
    }


def _price(bars: Bars) -> dict[str, Any]:
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
            "volume": float(bars.volume[last]),
        },
        "range": {"high": float(bars.high.max()), "low": float(bars.low.min())},
        "total_volume": total(bars.volume),
        "change_pct": change_in_percent(opened, closed),
    }


def change_in_percent(before: float, after: float) -> float | None:
    """Returns the change rounded to four decimals; None if it is not finite."""
    change = (after / before - 1) * 100
    return round(change, 4) if isfinite(change) else None


def _date(bars: Bars, index: int) -> str:
    return datetime.fromtimestamp(int(bars.time[index]), UTC).isoformat()


def last_values(computed: Computed) -> dict[str, Any]:
    """Returns one indicator of a summary, without the channels that it does not have."""
    channels = computed.channels
    shape = _head(computed)
    for name, lines in (("lines", channels.lines), ("histogram", channels.histogram)):
        if lines:
            shape[name] = [
                {"index": index, "label": line.label, "last_value": _last(line.values)}
                for index, line in enumerate(lines)
            ]
    if signals := _signals(channels):
        shape["signals"] = [{"x": s.index, "y": s.value, "label": s.label} for s in signals]
    if divlines := _divlines(channels):
        shape["divlines"] = [{"x1": d.x1, "y1": d.y1, "x2": d.x2, "y2": d.y2, "dashed": d.dashed} for d in divlines]
    return shape | _levels(channels)


def series(symbol: str, interval: str, bars: Bars, indicators: list[Computed]) -> dict[str, Any]:
    """Returns all bars and the values of each indicator at each bar; null before warm-up."""
    columns = (bars.time.tolist(), bars.open.tolist(), bars.high.tolist(), bars.low.tolist())
    rows = zip(*columns, bars.close.tolist(), bars.volume.tolist(), strict=True)
    return {
        "symbol": symbol,
        "interval": interval,
        "bars": [{"t": t, "o": o, "h": h, "l": low, "c": c, "v": v} for t, o, h, low, c, v in rows],
        "indicators": {each.request.key: _all_values(each, bars) for each in indicators},
    }


def _all_values(computed: Computed, bars: Bars) -> dict[str, Any]:
    channels = computed.channels
    shape = _head(computed)
    time = bars.time.tolist()
    for name, lines in (("lines", channels.lines), ("histogram", channels.histogram)):
        if lines:
            shape[name] = [
                {"index": index, "label": line.label, "values": _nullable(line.values)}
                for index, line in enumerate(lines)
            ]
    if channels.fills:
        shape["fills"] = [{"y1": _nullable(fill.upper), "y2": _nullable(fill.lower)} for fill in channels.fills]
    hbars = [h for h in channels.hbars if all(map(isfinite, (h.y, h.height, h.width, h.offset)))]
    if hbars:
        shape["hbars"] = [
            {"y": h.y, "height": h.height, "width": h.width, "offset": h.offset, "left": h.left} for h in hbars
        ]
    if signals := _signals(channels):
        shape["signals"] = [{"x": s.index, "t": time[s.index], "y": s.value, "label": s.label} for s in signals]
    if divlines := _divlines(channels):
        shape["divlines"] = [
            {"x1": d.x1, "t1": time[d.x1], "y1": d.y1, "x2": d.x2, "t2": time[d.x2], "y2": d.y2, "dashed": d.dashed}
            for d in divlines
        ]
    return shape | _levels(channels)


def _head(computed: Computed) -> dict[str, Any]:
    shape: dict[str, Any] = {"label": computed.request.label, "is_overlay": computed.request.indicator.overlay}
    if computed.channels.y_range and all(map(isfinite, computed.channels.y_range)):
        shape["y_range"] = list(computed.channels.y_range)
    if computed.note:
        shape["note"] = computed.note
    return shape


# Lines have null if a value is not finite. The contract does not allow null in the other channels, so items with values that
# are not finite are left out.


def _levels(channels: Channels) -> dict[str, Any]:
    found = [value for value in channels.hlines if isfinite(value)]
    return {"hlines": [{"y": value} for value in found]} if found else {}


def _signals(channels: Channels) -> list[Signal]:
    return [each for each in channels.signals if isfinite(each.value)]


def _divlines(channels: Channels) -> list[Segment]:
    return [each for each in channels.divlines if isfinite(each.y1) and isfinite(each.y2)]


def _last(values: Values) -> float | None:
    value = float(values[-1]) if len(values) else float("nan")
    return value if isfinite(value) else None


def _nullable(values: Values) -> list[float | None]:
    good = np.isfinite(values)
    plain = values.tolist()
    if good.all():
        return plain  # type: ignore[no-any-return]
    return [value if fine else None for value, fine in zip(plain, good.tolist(), strict=True)]
