"""Comparisons in a chart's numbers: the close with the range and with lines over the price, and lines with lines.

A touch is no cross: a line crosses another one at the first bar at which it is on the other side by more than rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from openbell.charts.styles import style_for
from openbell.indicators.evaluation import Computed
from openbell.indicators.float_ties import OSCILLATOR, above, below
from openbell.indicators.spec import Unit
from openbell.market.bars import Bars, Values
from openbell.market.clock import iso
from openbell.market.digits import significant
from openbell.market.price_history import percent_change

_SIDES = {1: "above", -1: "below", 0: "equal"}
_DIRECTIONS = {1: "up", -1: "down"}
MOST_AVERAGES = 6
"""Averages that are compared with each other; six have 15 pairs."""
CLOSE = "close"


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


@dataclass(frozen=True, slots=True)
class Crossing:
    """Two lines at the newest bar, and their last cross. Indexes are those of all bars that were computed."""

    line: str
    other: str
    side: int
    """1 if the line is above the other one, −1 if it is below, 0 if they are equal."""
    since: int
    """The first bar that was looked at."""
    last: int | None
    """The bar of the last cross. None if there was none."""
    direction: int
    """Of the last cross: 1 if the line went above the other one, −1 if below, 0 without a cross."""


@dataclass(frozen=True, slots=True)
class LineCrossings:
    """The crossings of a request."""

    found: tuple[Crossing, ...]
    note: str | None
    """Which averages were not compared."""


@dataclass(frozen=True, slots=True)
class _Curve:
    """A line with a name, and the first bar at which its values no longer depend on the start of the bars."""

    name: str
    values: Values
    first: int


def crossings(bars: Bars, shown: int, computed: Sequence[Computed]) -> LineCrossings:
    """Returns the crossings of the close with averages, of averages, and of the pairs of lines that indicators declare.

    `bars` are all bars that the indicators were computed on, of which the newest `shown` are shown. A pair without a value
    at the newest bar is left out.
    """
    start = len(bars) - shown
    names = _names(computed)
    curves = [
        _Curve(name, each.whole.lines[0].values, _first(each, start))
        for each, name in zip(computed, names, strict=True)
        if _is_average(each)
    ]
    averages = list({curve.name: curve for curve in curves}.values())
    compared = averages[:MOST_AVERAGES]
    close = _Curve(CLOSE, bars.close, 0)
    found = [_crossing(close, each, bars.close) for each in averages]
    found += [_crossing(one, two, bars.close) for one, two in combinations(compared, 2)]
    found += [
        _crossing(one, two, _scale(unit, bars))
        for each, name in zip(computed, names, strict=True)
        for one, two, unit in _declared(each, name, _first(each, start))
    ]
    left = [each.name for each in averages[MOST_AVERAGES:]]
    note = f"{', '.join(left)}: compared with the close only, not with other averages" if left else None
    return LineCrossings(tuple({(each.line, each.other): each for each in found if each}.values()), note)


def last_cross(sides: npt.NDArray[np.int64]) -> tuple[int, int] | None:
    """Returns the index and the new side of the last change between 1 and −1, past zeros; None if there is none."""
    apart = np.flatnonzero(sides)
    changes = np.flatnonzero(np.diff(sides[apart]))
    if not len(changes):
        return None
    index = int(apart[changes[-1] + 1])
    return index, int(sides[index])


def _crossing(one: _Curve, two: _Curve, scale: Values | float) -> Crossing | None:
    both = np.isfinite(one.values) & np.isfinite(two.values)
    if not len(both) or not both[-1]:
        return None
    begin = max(one.first, two.first)
    first = begin + int(both[begin:].argmax())
    with np.errstate(invalid="ignore"):
        higher, lower = (compare(one.values, two.values, scale) for compare in (above, below))
    sides = (np.int64(1) * (higher & both) - (lower & both))[first:]
    last = last_cross(sides)
    return Crossing(
        one.name,
        two.name,
        int(sides[-1]),
        first,
        None if last is None else first + last[0],
        0 if last is None else last[1],
    )


def _is_average(computed: Computed) -> bool:
    """Returns True for one line over the price that has no signals and no gaps of its own, such as an SMA or VWAP."""
    indicator, lines = computed.request.indicator, computed.whole.lines
    own = indicator.profile or indicator.signals or indicator.sparse or computed.whole.histogram
    return indicator.overlay and len(lines) == 1 and not own


def _declared(computed: Computed, name: str, first: int) -> Iterator[tuple[_Curve, _Curve, Unit]]:
    lines = {line.label: line.values for line in computed.whole.lines}
    for pair in computed.request.indicator.crosses:
        if pair.line in lines and pair.other in lines:
            one, two = (_Curve(f"{name} {label}", lines[label], first) for label in (pair.line, pair.other))
            yield one, two, pair.unit


def _first(computed: Computed, start: int) -> int:
    """Returns the first bar to look at: at the latest `start`, the first bar that is shown."""
    request = computed.request
    if request.indicator.regular or request.indicator.by_day:
        return start  # earlier sessions need not be complete
    return min(start, request.indicator.settles * request.warmup - 1)


def _scale(unit: Unit, bars: Bars) -> Values | float:
    """Returns the number whose share `TOLERANCE` is rounding."""
    if unit is Unit.PRICE:
        return bars.close
    return float(bars.volume.max()) if unit is Unit.VOLUME else OSCILLATOR


def _names(computed: Sequence[Computed]) -> list[str]:
    """Returns the labels. Requests that differ have different names: two with one label also have their keys."""
    labels = [each.request.label for each in computed]
    settings = [(each.request.indicator.name, dict(each.request.settings)) for each in computed]
    return [
        f"{label} ({each.request.key})"
        if any(label == other and own != theirs for other, theirs in zip(labels, settings, strict=True))
        else label
        for each, label, own in zip(computed, labels, settings, strict=True)
    ]
