"""Entries and exits of strategies that compare averages and oscillators of the price, from the published definitions."""

from __future__ import annotations

from itertools import pairwise
from math import log, sqrt

from tests.strategies.plain_comparisons import (
    Rule,
    crossed_down,
    crossed_up,
    crossings,
    known,
    padded,
    smoothed,
    sums,
    under,
)
from tests.strategies.plain_rules import Rows, Series, ema, over, rsi, sma, where
from tests.strategies.plain_series import closes


def sma_ema_lines(rows: Rows) -> tuple[Series, Series]:
    return ema(closes(rows), 10), sma(closes(rows), 50)


def roc_lines(rows: Rows) -> tuple[Series, Series]:
    close = closes(rows)
    change = [100 * (now / then - 1) for then, now in zip(close[:-12], close[12:], strict=True)]
    line = padded(change, len(rows))
    return line, smoothed(line, sma, 9)


def rsi_lines(rows: Rows) -> tuple[Series, Series]:
    line = rsi(closes(rows), 14)
    return line, smoothed(line, ema, 9)


def trix_lines(rows: Rows) -> tuple[Series, Series]:
    """Each of the three averages starts when the one before has enough values."""
    level: Series = [log(close) for close in closes(rows)]
    for _ in range(3):
        level = smoothed(level, ema, 15)
    line = padded([10_000 * (now - then) for then, now in pairwise(known(level))], len(rows))
    return line, smoothed(line, ema, 9)


def symmetric(values: list[float]) -> list[float]:
    """Four bars in a row, weighted 1, 2, 2 and 1."""
    groups = zip(values, values[1:], values[2:], values[3:], strict=False)
    return [(first + 2 * second + 2 * third + fourth) / 6 for first, second, third, fourth in groups]


def vigor_lines(rows: Rows) -> tuple[Series, Series]:
    moves = sums(symmetric([row.close - row.open for row in rows]), 10)
    ranges = sums(symmetric([row.high - row.low for row in rows]), 10)
    vigor = [move / height for move, height in zip(moves, ranges, strict=True)]
    return padded(vigor, len(rows)), padded(symmetric(vigor), len(rows))


def vidya_lines(rows: Rows) -> tuple[Series, Series]:
    """Starts with the simple average of 14 closes; the weight follows the momentum of 9 changes."""
    close = closes(rows)
    changes = [0.0, *[now - then for then, now in pairwise(close)]]
    found = [sum(close[:14]) / 14]
    for at in range(14, len(close)):
        latest = changes[at - 8 : at + 1]
        moved = sum(abs(change) for change in latest)
        momentum = abs(sum(latest)) / moved if moved else 0.0
        found.append(found[-1] + 2 / 15 * momentum * (close[at] - found[-1]))
    return [*close], padded(found, len(rows))


def rainbow_lines(rows: Rows) -> tuple[Series, float]:
    close = closes(rows)
    colours: list[Series] = [[*close]]
    for _ in range(10):
        colours.append(smoothed(colours[-1], sma, 2))
    found = []
    for at in range(10, len(close)):
        mean = sum(known([colour[at] for colour in colours[1:]])) / 10
        window = close[at - 9 : at + 1]
        found.append(100 * (close[at] - mean) / (max(window) - min(window)))
    return padded(found, len(rows)), 0.0


def triple_ema_entries(rows: Rows) -> list[int]:
    fast, medium, slow = (ema(closes(rows), length) for length in (4, 9, 18))
    return where(len(rows), lambda at: over(medium[at], slow[at]) and over(fast[at], medium[at]))


def triple_ema_exits(rows: Rows) -> list[int]:
    fast, medium = (ema(closes(rows), length) for length in (4, 9))
    return where(len(rows), lambda at: under(fast[at], medium[at]))


def place(values: list[float], lows: list[float], highs: list[float], length: int) -> list[float]:
    """Where a value is between the lowest low and the highest high of the latest bars, in per cent."""
    found = []
    for end in range(length, len(values) + 1):
        low, high = min(lows[end - length : end]), max(highs[end - length : end])
        found.append(100 * (values[end - 1] - low) / (high - low))
    return found


def stochastic(rows: Rows) -> Series:
    raw = place(closes(rows), [row.low for row in rows], [row.high for row in rows], 14)
    return smoothed(padded(raw, len(rows)), sma, 3)


def stochastic_ema_entries(rows: Rows) -> list[int]:
    line, close, trend = stochastic(rows), closes(rows), ema(closes(rows), 50)
    return where(len(rows), lambda at: crossed_up(line, 20, at) and over(close[at], trend[at]))


def stochastic_ema_exits(rows: Rows) -> list[int]:
    line, close, trend = stochastic(rows), closes(rows), ema(closes(rows), 50)
    return where(len(rows), lambda at: under(close[at], trend[at]) or crossed_down(line, 80, at))


def stochastic_rsi(rows: Rows) -> Series:
    """A window begins with the first RSI, and grows from two values to 14."""
    strength = known(rsi(closes(rows), 14))
    raw = []
    for end in range(2, len(strength) + 1):
        window = strength[max(0, end - 14) : end]
        raw.append(100 * (window[-1] - min(window)) / (max(window) - min(window)))
    return smoothed(padded(raw, len(rows)), sma, 3)


def stochastic_rsi_entries(rows: Rows) -> list[int]:
    line = stochastic_rsi(rows)
    return where(len(rows), lambda at: crossed_up(line, 20, at))


def stochastic_rsi_exits(rows: Rows) -> list[int]:
    line = stochastic_rsi(rows)
    return where(len(rows), lambda at: crossed_down(line, 80, at))


def regression(close: list[float]) -> tuple[float, float, float]:
    """The end of the least-squares line, its rise per bar, and the deviation of the closes from it."""
    count = len(close)
    middle, mean = (count - 1) / 2, sum(close) / count
    squares = sum((at - middle) ** 2 for at in range(count))
    rise = sum((at - middle) * (price - mean) for at, price in enumerate(close)) / squares
    away = [price - (mean + rise * (at - middle)) for at, price in enumerate(close)]
    return mean + rise * middle, rise, sqrt(sum(each * each for each in away) / count)


def regression_channel_entries(rows: Rows) -> list[int]:
    close, found = closes(rows), []
    for at in range(49, len(close)):
        end, rise, deviation = regression(close[at - 49 : at + 1])
        if under(rise, 0) and over(close[at], end + 2 * deviation):
            found.append(at)
    return found


def regression_channel_exits(rows: Rows) -> list[int]:
    close, found = closes(rows), []
    for at in range(49, len(close)):
        end, _, deviation = regression(close[at - 49 : at + 1])
        if under(close[at], end - 2 * deviation):
            found.append(at)
    return found


BOTH: dict[str, tuple[Rule, Rule]] = {
    "SMA_EMA_CROSSOVER": crossings(sma_ema_lines),
    "ROC_MA_CROSSOVER": crossings(roc_lines),
    "RSI_EMA_CROSSOVER": crossings(rsi_lines),
    "TRIX_SIGNAL_LINE": crossings(trix_lines),
    "RVI": crossings(vigor_lines),
    "VARIABLE_PERIOD_EMA": crossings(vidya_lines),
    "RAINBOW_OSCILLATOR": crossings(rainbow_lines),
    "TRIPLE_EMA_CROSSOVER": (triple_ema_entries, triple_ema_exits),
    "STOCHASTIC_EMA": (stochastic_ema_entries, stochastic_ema_exits),
    "STOCHASTIC_RSI": (stochastic_rsi_entries, stochastic_rsi_exits),
    "REGRESSION_CHANNEL": (regression_channel_entries, regression_channel_exits),
}
ENTRIES = {name: entries for name, (entries, _) in BOTH.items()}
EXITS = {name: exits for name, (_, exits) in BOTH.items()}
