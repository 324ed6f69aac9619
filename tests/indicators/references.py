"""The indicators again, from their definitions, one plain number after another. Shares nothing with the project's code."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import fsum, nan, sqrt

Numbers = Sequence[float]


def sma(values: Numbers, length: int) -> list[float]:
    """The mean of the newest `length` values."""
    return [nan if at + 1 < length else fsum(values[at + 1 - length : at + 1]) / length for at in range(len(values))]


def smoothed(values: Numbers, length: int, weight: float) -> list[float]:
    """Begins with the simple mean, then moves by `weight` towards each value. Leading NaN are waited out."""
    out: list[float] = []
    seed: list[float] = []
    level = nan
    for value in values:
        if value != value:
            out.append(nan)
            continue
        if len(seed) < length:
            seed.append(value)
            level = fsum(seed) / length if len(seed) == length else nan
        else:
            level = weight * value + (1.0 - weight) * level
        out.append(level)
    return out


def ema(values: Numbers, length: int) -> list[float]:
    """Exponential average as TradingView's ta.ema of a series with its SMA as the seed."""
    return smoothed(values, length, 2.0 / (length + 1))


def wilder(values: Numbers, length: int) -> list[float]:
    """TradingView's ta.rma."""
    return smoothed(values, length, 1.0 / length)


def macd(values: Numbers, fast: int, slow: int, signal: int) -> tuple[list[float], list[float], list[float]]:
    """Line, signal and histogram."""
    line = [a - b for a, b in zip(ema(values, fast), ema(values, slow), strict=True)]
    trigger = ema(line, signal)
    return line, trigger, [a - b for a, b in zip(line, trigger, strict=True)]


def rsi(values: Numbers, length: int) -> list[float]:
    """Wilder's: 100 − 100 / (1 + average gain / average loss)."""
    changes = [b - a for a, b in pairwise(values)]
    gains = wilder([max(change, 0.0) for change in changes], length)
    losses = wilder([max(-change, 0.0) for change in changes], length)
    out = [nan] * min(1, len(values))
    for gain, loss in zip(gains, losses, strict=True):
        if gain != gain:
            out.append(nan)
        elif loss == 0.0:
            out.append(50.0 if gain == 0.0 else 100.0)
        else:
            out.append(100.0 - 100.0 / (1.0 + gain / loss))
    return out


def bbands(values: Numbers, length: int, width: float) -> tuple[list[float], list[float], list[float]]:
    """Upper, middle, lower with the population's deviation."""
    middle = sma(values, length)
    upper, lower = [], []
    for at, mean in enumerate(middle):
        window = values[max(0, at + 1 - length) : at + 1]
        deviation = nan if mean != mean else sqrt(fsum((value - mean) ** 2 for value in window) / length)
        upper.append(mean + width * deviation)
        lower.append(mean - width * deviation)
    return upper, middle, lower


def atr(highs: Numbers, lows: Numbers, closes: Numbers, length: int) -> list[float]:
    """TradingView's ta.atr: the first true range is high − low, then Wilder's average of it."""
    ranges = []
    for at, (high, low) in enumerate(zip(highs, lows, strict=True)):
        before = closes[at - 1] if at else nan
        ranges.append(max(high - low, abs(high - before), abs(low - before)) if at else high - low)
    return wilder(ranges, length)


def vwap(columns: Sequence[Numbers], days: Sequence[int]) -> list[float]:
    """From highs, lows, closes and volumes: turnover at the typical price over volume since the day began.

    NaN on day −1 and while nothing traded.
    """
    highs, lows, closes, volumes = columns
    out: list[float] = []
    turnover: list[float] = []
    volume: list[float] = []
    for at, day in enumerate(days):
        if at == 0 or day != days[at - 1]:
            turnover, volume = [], []
        turnover.append((highs[at] + lows[at] + closes[at]) / 3.0 * volumes[at])
        volume.append(volumes[at])
        traded = fsum(volume)
        out.append(fsum(turnover) / traded if day >= 0 and traded > 0 else nan)
    return out


Row = tuple[int, float, float, float, float, float]
"""A minute: time, open, high, low, close, volume."""
Hours = Sequence[tuple[int, int]]
"""Opening and closing of each session, oldest first."""


def session_at(start: int, end: int, hours: Hours) -> int | None:
    """The session that [start, end) shares time with."""
    return next((number for number, (opened, closed) in enumerate(hours) if opened < end and start < closed), None)


def regular_parts(minutes: Sequence[Row], hours: Hours, seconds: int) -> dict[int, tuple[float, float, float, float]]:
    """High, low, close and volume of the regular minutes of each larger bar, by its start."""
    groups: dict[int, list[Row]] = {}
    for row in minutes:
        if session_at(row[0], row[0] + 60, hours) is not None:
            groups.setdefault(row[0] - row[0] % seconds, []).append(row)
    return {
        start: (max(row[2] for row in rows), min(row[3] for row in rows), rows[-1][4], fsum(row[5] for row in rows))
        for start, rows in groups.items()
    }


def session_vwap(
    starts: Sequence[int], minutes: Sequence[Row], hours: Hours, seconds: int
) -> tuple[list[float], list[float]]:
    """VWAP and the deviation around it at each larger bar, from the regular parts of its session so far, in two passes."""
    parts = regular_parts(minutes, hours, seconds)
    sessions = {start: session_at(start, start + seconds, hours) for start in starts}
    means, deviations = [], []
    for start, session in sessions.items():
        so_far = [part for at, part in parts.items() if at <= start and sessions.get(at) == session]
        traded = fsum(volume for *_, volume in so_far)
        if session is None or not traded:
            means.append(nan)
            deviations.append(nan)
            continue
        prices = [((high + low + close) / 3.0, volume) for high, low, close, volume in so_far]
        mean = fsum(price * volume for price, volume in prices) / traded
        means.append(mean)
        deviations.append(sqrt(fsum(volume * (price - mean) ** 2 for price, volume in prices) / traded))
    return means, deviations


def last_closed_session(
    starts: Sequence[int], minutes: Sequence[Row], hours: Hours
) -> list[tuple[float, float, float] | None]:
    """High, low and close of the last session that was traded in and had closed when each bar began."""
    known = []
    for opened, closed in hours:
        rows = [row for row in minutes if opened <= row[0] < closed]
        if rows:
            known.append((closed, (max(row[2] for row in rows), min(row[3] for row in rows), rows[-1][4])))
    return [next((found for closed, found in reversed(known) if closed <= start), None) for start in starts]
