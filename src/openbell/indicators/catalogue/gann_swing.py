"""Gann's swing chart: it turns up after a number of higher highs in a row, down after as many lower lows.

A bar within the range of the one before is skipped: the next bar is compared with the last one that counted. A completed
swing is the extreme from the bar of one turn to the bar of the next. The direction is 0 until the first turn, which is no
signal: it depends on the first bar.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import nan

import numpy as np

from openbell.indicators.channels import Channels, Direction, Line
from openbell.indicators.lines import step_lines
from openbell.indicators.rules import Rule, array_signals
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars, Values

SIGNALS = {"turn_up": Direction.UP, "turn_down": Direction.DOWN}


def _turns(rows: Iterable[tuple[float, float]], bars: int) -> dict[int, tuple[float, float, float]]:
    """The direction and the last completed swing high and swing low after each bar that turns, by its number.

    A row is a bar's high and low.
    """
    turns = {}
    high_before = low_before = peak = trough = top = bottom = nan
    rises, falls, way = 0, 0, 0.0
    for at, (high, low) in enumerate(rows):
        if high > peak:  # noqa: PLR1730 - max takes twice the time
            peak = high
        if low < trough:  # noqa: PLR1730
            trough = low
        if high <= high_before and low >= low_before:
            continue  # within the range of the last bar that counted
        rises = rises + 1 if high > high_before else 0
        falls = falls + 1 if low < low_before else 0
        high_before, low_before = high, low
        if (rises >= bars and way <= 0.0) or (falls >= bars and way >= 0.0):
            if way > 0.0:
                top = peak
            elif way < 0.0:
                bottom = trough
            way, peak, trough = 1.0 if rises >= bars and way <= 0.0 else -1.0, high, low
            turns[at] = way, top, bottom
    return turns


def _rules(before: Sequence[Values], now: Sequence[Values]) -> Sequence[Rule]:
    """A signal at each turn but the first, with the price of the swing that it completes."""
    way_before, (way, high, low) = before[0], now
    return (
        ("turn_up", (way_before < 0.0) & (way > 0.0), low),
        ("turn_down", (way_before > 0.0) & (way < 0.0), high),
    )


def _compute(series: Bars, /, bars: int) -> Channels:
    turns = _turns(zip(series.high.tolist(), series.low.tolist(), strict=True), bars)
    lines = step_lines(turns, (0.0, nan, nan), len(series))
    for line in lines:
        line[:bars] = np.nan
    labels = ("direction", "swing_high", "swing_low")
    return Channels(lines=tuple(map(Line, labels, lines)), signals=array_signals(_rules, lines))


INDICATOR = Indicator(
    name="gann_swing",
    title="Gann Swing",
    description="Gann's swing chart: its direction and the last completed swing high and swing low",
    brief="Gann's swing chart: direction, last swing high and low",
    overlay=True,
    compute=_compute,
    warmup=lambda bars: bars + 1,
    parameters=(Parameter("bars", 2, 1, 20),),
    inputs=("high", "low"),
    signals=SIGNALS,
    sparse=("swing_high", "swing_low"),
)
