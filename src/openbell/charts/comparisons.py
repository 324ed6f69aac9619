"""Comparisons in a chart's numbers: the close with the range and with lines over the price, and lines with lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from openbell.charts.styles import style_for
from openbell.indicators.crossings import Crossing, crossings
from openbell.indicators.evaluation import Computed
from openbell.market.bars import Bars, Values
from openbell.market.clock import iso
from openbell.market.digits import significant
from openbell.market.price_history import percent_change

_SIDES = {1: "above", -1: "below", 0: "equal"}
_DIRECTIONS = {1: "up", -1: "down"}


def price_range(bars: Bars) -> dict[str, Any]:
    """Returns the highest and the lowest price, the newest bar with each, and how far the last close is from them."""
    last, close = len(bars) - 1, float(bars.close[-1])
    top, bottom = (last - int(each[::-1].argmax()) for each in (bars.high, -bars.low))
    high, low = float(bars.high[top]), float(bars.low[bottom])
    return {
        "high": high,
        "high_date": iso(int(bars.time[top])),
        "low": low,
        "low_date": iso(int(bars.time[bottom])),
        "from_high_pct": significant_change(high, close),
        "from_low_pct": significant_change(low, close),
    }


def largest_fall(bars: Bars) -> dict[str, Any] | None:
    """Returns the largest fall from a close to a later one, in per cent, with the bars of both; None if none is lower."""
    highest = np.maximum.accumulate(bars.close)
    with np.errstate(invalid="ignore", divide="ignore"):
        falls = bars.close / highest - 1.0
    lowest = int(np.nanargmin(falls))
    if not falls[lowest] < 0.0:
        return None
    begun = int(np.flatnonzero(bars.close[: lowest + 1] == highest[lowest])[-1])
    return {
        "pct": significant(float(falls[lowest]) * 100),
        "from": iso(int(bars.time[begun])),
        "to": iso(int(bars.time[lowest])),
    }


def price_lines(computed: Computed) -> frozenset[str]:
    """Returns the labels of the lines that are prices: those drawn over the price."""
    if not computed.request.indicator.overlay:
        return frozenset()
    return frozenset(line.label for line in computed.channels.lines) - style_for(computed).hidden


def close_against(line: Values, bars: Bars) -> dict[str, float]:
    """Returns the field `close_vs_line_pct` of a line over the price; none if it has no value at the newest bar."""
    if not len(bars):
        return {}
    found = significant_change(float(line[-1]), float(bars.close[-1]))
    return {} if found is None else {"close_vs_line_pct": found}


def significant_change(before: float, now: float) -> float | None:
    """Returns the change from one price to another in per cent, as it leaves; None if there is none."""
    change = percent_change(before, now)
    return None if change is None else significant(change)


def crossing_fields(whole: Bars, shown: int, indicators: Sequence[Computed]) -> dict[str, Any]:
    """Returns the crossings of a chart's lines, and which lines were not compared; no field if there are none."""
    compared = crossings(whole, shown, indicators)
    found: dict[str, Any] = {}
    if compared.found:
        found["crossings"] = [_shape(each, whole) for each in compared.found]
    if compared.note:
        found["crossings_note"] = compared.note
    return found


def _shape(crossing: Crossing, bars: Bars) -> dict[str, Any]:
    shape: dict[str, Any] = {"a": crossing.line, "b": crossing.other, "a_is": _SIDES[crossing.side]}
    if crossing.last is None:
        return {**shape, "last_cross": None, "since": iso(int(bars.time[crossing.since]))}
    return {
        **shape,
        "last_cross": {
            "direction": _DIRECTIONS[crossing.direction],
            "time": iso(int(bars.time[crossing.last])),
            "bars_ago": len(bars) - 1 - crossing.last,
        },
    }
