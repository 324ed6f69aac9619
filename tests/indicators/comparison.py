"""The lines of an indicator beside those of its reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from openbell.indicators.registry import get
from openbell.indicators.spec import Setting
from openbell.market.bars import Bars, Values
from tests.indicators.differences import NEUTRAL, ROUNDED, SETTLED
from tests.indicators.plain_lines import SHORT, beyond
from tests.indicators.real_series import HALT

LIMIT = 1e-9
BY_SESSION = ("session_vp", "tpo")
"""Profiles of each session, with levels of each."""
RECOVERED = 30
"""Bars after a halt at which every window has left it."""


def part_of(name: str, bars: Bars) -> Bars:
    """Fewer bars where the reference of an indicator takes long."""
    if get(name).needs:
        return bars.take(slice(0, SHORT))
    return bars.take(slice(150, 275)) if name == "rolling_profile" else bars


def lines_of(name: str, bars: Bars, /, **chosen: Setting) -> dict[str, Values]:
    """Every line; of a profile its rows and levels, of the zigzag its swings."""
    indicator = get(name)
    with np.errstate(all="ignore"):
        found = indicator.run(bars, {kind: beyond(bars) for kind in indicator.needs}, **chosen)
    lines = {line.label: line.values for line in (*found.lines, *found.histogram)}
    if name == "zigzag":
        lines["bar"] = np.array([float(signal.index) for signal in found.signals])
        lines["price"] = np.array([signal.value for signal in found.signals])
    elif indicator.profile:
        lines["width"] = np.array([bar.width for bar in found.hbars])
        lines["price"] = np.array([bar.y for bar in found.hbars])
        lines["level"] = np.array(found.hlines)
        if name in BY_SESSION:
            lines["session level"] = np.array([segment.y1 for segment in found.divlines])
    return lines


@dataclass(frozen=True)
class Comparison:
    """A line and its reference."""

    line: str
    first: int
    """The bar of the first value; the number of bars if there is none."""
    expected_first: int
    worst: float
    """The largest difference, relative to the value or to the usual size of the line; infinite if a value is missing."""
    at: int

    def __str__(self) -> str:
        where = f"worst {self.worst:.2g} at {self.at}"
        return f"{self.line}: first value at {self.first} for {self.expected_first}, {where}"


def compare(line: str, found: Values, expected: Sequence[float] | Values, halted: bool) -> Comparison:
    """Compare from the bar on at which both have values. `halted` is True for the series with a halt."""
    theirs = np.asarray(expected, dtype=np.float64)
    if len(found) != len(theirs):
        return Comparison(line, 0, 0, np.inf, min(len(found), len(theirs)))
    name = line.partition(".")[0]
    first, expected_first = first_value(found), first_value(theirs)
    start = max(first, expected_first, SETTLED.get(name, 0))
    apart = distance(found, theirs)
    apart[:start] = 0.0
    if line in NEUTRAL | ROUNDED:
        constant = (NEUTRAL | ROUNDED)[line]
        neutral = np.isnan(found) if isnan(constant) else np.abs(found - constant) <= 1e-6
        apart[np.isnan(theirs) & neutral] = 0.0
        if halted and neutral[HALT.stop - 1]:
            apart[HALT.start : HALT.stop + RECOVERED] = 0.0
    at = int(np.argmax(apart)) if len(apart) else 0
    return Comparison(line, first, expected_first, float(apart[at]) if len(apart) else 0.0, at)


def first_value(values: Values) -> int:
    known = np.flatnonzero(np.isfinite(values))
    return int(known[0]) if len(known) else len(values)


def distance(found: Values, expected: Values) -> Values:
    """Relative to the value, or to the usual size of the line where it is smaller, as an oscillator's near 0."""
    known = np.isfinite(expected)
    usual = float(np.median(np.abs(expected[known]))) if known.any() else 0.0
    scale = np.maximum(np.abs(np.where(known, expected, 0.0)), usual)
    with np.errstate(invalid="ignore"):
        apart = np.abs(found - expected) / np.where(scale > 0.0, scale, 1.0)
    both_missing = np.isnan(found) & np.isnan(expected)
    return np.where(both_missing, 0.0, np.where(np.isnan(apart), np.inf, apart))
