"""Entries and exits of strategies that judge a bar by its volume, its range and the place of its close."""

from __future__ import annotations

from typing import NamedTuple

from tests.strategies.plain_comparisons import Rule
from tests.strategies.plain_rules import Row, Rows, ema, over, where
from tests.strategies.plain_series import closes
from tests.strategies.plain_turnover_rules import relative_volume


def close_place(row: Row) -> float:
    """0 if a bar closes at its low, 1 at its high."""
    return (row.close - row.low) / (row.high - row.low)


def is_new_high(rows: Rows, at: int, length: int) -> bool:
    return at >= length and rows[at].high > max(row.high for row in rows[at - length : at])


def is_new_low(rows: Rows, at: int, length: int) -> bool:
    return at >= length and rows[at].low < min(row.low for row in rows[at - length : at])


def breakout_entries(rows: Rows) -> list[int]:
    def holds(at: int) -> bool:
        breaks = is_new_high(rows, at, 20) and not is_new_low(rows, at, 10)
        return breaks and over(relative_volume(rows, at, 50), 1.5) and close_place(rows[at]) > 0.5

    return where(len(rows), holds)


def breakout_exits(rows: Rows) -> list[int]:
    """The stop is no condition of a close."""
    return where(len(rows), lambda at: is_new_low(rows, at, 10))


class Effort(NamedTuple):
    """A bar of volume spread analysis: volume and range over their averages of 20 bars, which include the bar."""

    volume: float
    spread: float
    quieter: bool
    """Its volume is less than that of each of the two bars before."""


def effort(rows: Rows, at: int) -> Effort:
    window = rows[at - 19 : at + 1]
    volume = 20 * rows[at].volume / sum(row.volume for row in window)
    spread = 20 * (rows[at].high - rows[at].low) / sum(row.high - row.low for row in window)
    return Effort(volume, spread, rows[at].volume < min(rows[at - 1].volume, rows[at - 2].volume))


def is_dry(bar: Effort) -> bool:
    """A narrow bar on little volume: nobody follows its direction."""
    return bar.volume < 0.7 and bar.spread < 0.8 and bar.quieter


def spread_analysis_entries(rows: Rows) -> list[int]:
    close, trend = closes(rows), ema(closes(rows), 50)

    def holds(at: int) -> bool:
        in_trend, bar = over(close[at], trend[at]), effort(rows, at)
        stopping = bar.volume > 1.5 and bar.spread > 1.2 and close_place(rows[at]) > 0.5
        return close[at] < close[at - 1] and (stopping or (is_dry(bar) and in_trend))

    return where(len(rows), holds)


def spread_analysis_exits(rows: Rows) -> list[int]:
    def holds(at: int) -> bool:
        bar = effort(rows, at)
        no_demand = rows[at].close > rows[at - 1].close and is_dry(bar)
        upthrust = is_new_high(rows, at, 20) and close_place(rows[at]) < 0.3 and bar.volume > 1.5
        return no_demand or upthrust

    return [at for at in range(19, len(rows)) if holds(at)]


BOTH: dict[str, tuple[Rule, Rule]] = {
    "VOLUME_BREAKOUT": (breakout_entries, breakout_exits),
    "VOLUME_SPREAD_ANALYSIS": (spread_analysis_entries, spread_analysis_exits),
}
ENTRIES = {name: entries for name, (entries, _) in BOTH.items()}
EXITS = {name: exits for name, (_, exits) in BOTH.items()}
