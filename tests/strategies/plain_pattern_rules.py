"""Exits of strategies that follow gaps, stops, swings and double tops, beside their entries from `plain_rules`."""

from __future__ import annotations

from tests.strategies import plain_rules
from tests.strategies.plain_comparisons import Rule, under
from tests.strategies.plain_rules import Rows, double_patterns, ema, last_swings, volatility_sides, where
from tests.strategies.plain_series import closes


def price_gap(rows: Rows) -> list[int]:
    close, trend = closes(rows), ema(closes(rows), 10)
    return where(len(rows), lambda at: under(close[at], trend[at]))


def volatility_stop(rows: Rows) -> list[int]:
    return [at for at, long in enumerate(volatility_sides(rows)) if long is False]


def fibonacci_retracements(rows: Rows) -> list[int]:
    """Above the old high, or below 78.6 % of the upswing; after the next low, above the high or below that low."""
    found = []
    for at, (row, (kind, last, before)) in enumerate(zip(rows, last_swings(rows), strict=True)):
        if kind == "high" and not last - 0.786 * (last - before) <= row.close <= last:
            found.append(at)
        if kind == "low" and not last <= row.close <= before:
            found.append(at)
    return found


def double_tops(rows: Rows) -> list[int]:
    """The stop is no condition of a close."""
    return double_patterns(rows)[1]


EXITS: dict[str, Rule] = plain_rules.EXITS | {
    "PRICE_GAP": price_gap,
    "VOLATILITY_STOP": volatility_stop,
    "FIBONACCI_RETRACEMENTS": fibonacci_retracements,
    "DOUBLE_TOP_BOTTOM": double_tops,
}
ENTRIES = {name: plain_rules.RULES[name] for name in EXITS}
