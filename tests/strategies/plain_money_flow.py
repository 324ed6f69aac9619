"""Entries and exits of strategies by the flow of volume, at their defaults, as published."""

from __future__ import annotations

from itertools import accumulate, pairwise

from tests.strategies.plain_rules import Row, Rows, Series, crossed, ema, later, over, where
from tests.strategies.plain_series import Closes, Rule, closes, combined, of_series


def money_flow_index(rows: Rows) -> Series:
    """The share of the turnover of 14 bars on which the typical price rose, in per cent of those on which it moved.

    Typical prices are compared as thirds of whole cents. The first bar counts on both sides.
    """
    typical = [(row.high + row.low + row.close) / 3 for row in rows]
    cents = [round(300 * each) for each in typical]
    found: Series = [None] * 13
    for at in range(13, len(rows)):
        rising = falling = 0.0
        for each in range(at - 13, at + 1):
            turnover = typical[each] * rows[each].volume
            rising += turnover if each == 0 or cents[each] > cents[each - 1] else 0
            falling += turnover if each == 0 or cents[each] < cents[each - 1] else 0
        found.append(100 * rising / (rising + falling))
    return found


def aroon(rows: Rows) -> tuple[Series, Series]:
    """Chande's Aroon of 14 bars: how recent the highest high and the lowest low are. Of equal ones the oldest counts."""
    ups: Series = [None] * 14
    downs: Series = [None] * 14
    for at in range(14, len(rows)):
        ages = range(15)
        since_high = max(ages, key=lambda age: (rows[at - age].high, age))
        since_low = min(ages, key=lambda age: (rows[at - age].low, -age))
        ups.append(100 * (14 - since_high) / 14)
        downs.append(100 * (14 - since_low) / 14)
    return ups, downs


def aroon_mfi(rows: Rows) -> Closes:
    (ups, downs), flow = aroon(rows), money_flow_index(rows)
    return where(len(rows), lambda at: over(ups[at], downs[at]) and over(flow[at], 50))


def aroon_mfi_exit(rows: Rows) -> Closes:
    ups, downs = aroon(rows)
    return where(len(rows), lambda at: over(downs[at], ups[at]))


def flow_volume(row: Row) -> float:
    """Chaikin's volume, weighed by the place of the close in the range of the bar: -1 at the low, 1 at the high."""
    reach = row.high - row.low
    return row.volume * ((row.close - row.low) - (row.high - row.close)) / reach if reach else 0.0


def chaikin(rows: Rows) -> Series:
    """The averages of 3 and of 10 bars of the accumulation/distribution line."""
    line = list(accumulate(flow_volume(row) for row in rows))
    return combined(lambda fast, slow: fast - slow, ema(line, 3), ema(line, 10))


def chaikin_oscillator(rows: Rows) -> Closes:
    line, zero = chaikin(rows), [0.0] * len(rows)
    return where(len(rows), lambda at: crossed(line, zero, at))


def chaikin_exit(rows: Rows) -> Closes:
    line, zero = chaikin(rows), [0.0] * len(rows)
    return where(len(rows), lambda at: crossed(zero, line, at))


def chaikin_money_flow(rows: Rows) -> Series:
    """The weighed volume of 21 bars over their volume."""
    windows = [rows[at - 20 : at + 1] for at in range(20, len(rows))]
    return later([sum(map(flow_volume, window)) / sum(row.volume for row in window) for window in windows], 20)


def cmf_zero_line(rows: Rows) -> Closes:
    line, zero = chaikin_money_flow(rows), [0.0] * len(rows)
    return where(len(rows), lambda at: crossed(line, zero, at))


def cmf_exit(rows: Rows) -> Closes:
    line, zero = chaikin_money_flow(rows), [0.0] * len(rows)
    return where(len(rows), lambda at: crossed(zero, line, at))


def chande_momentum(rows: Rows) -> Series:
    """Rises less falls of 14 bars in per cent of both."""
    moves = [after - before for before, after in pairwise(closes(rows))]
    windows = [moves[at - 13 : at + 1] for at in range(13, len(moves))]
    return later([100 * sum(window) / sum(map(abs, window)) for window in windows], 14)


def cmo_mfi(rows: Rows) -> Closes:
    momentum, flow = chande_momentum(rows), money_flow_index(rows)
    return where(len(rows), lambda at: over(-50, momentum[at]) and over(20, flow[at]))


def cmo_mfi_exit(rows: Rows) -> Closes:
    momentum, flow = chande_momentum(rows), money_flow_index(rows)
    return where(len(rows), lambda at: over(momentum[at], 50) or over(flow[at], 80))


def klinger(rows: Rows) -> tuple[Series, Series]:
    """The averages of 34 and of 55 bars of the volume, negative where the typical price fell, and the signal line.

    The volume of the first bar is negative too.
    """
    typical = [round(100 * (row.high + row.low + row.close)) for row in rows]
    volume = [-rows[0].volume] + [
        row.volume if now >= then else -row.volume for row, (then, now) in zip(rows[1:], pairwise(typical), strict=True)
    ]
    line = combined(lambda fast, slow: fast - slow, ema(volume, 34), ema(volume, 55))
    return line, of_series(ema, line, 13)


def klinger_volume(rows: Rows) -> Closes:
    close, (line, signal) = closes(rows), klinger(rows)
    trend = ema(close, 89)

    def holds(at: int) -> bool:
        return crossed(line, signal, at) and over(0, line[at]) and over(close[at], trend[at])

    return where(len(rows), holds)


def klinger_exit(rows: Rows) -> Closes:
    line, signal = klinger(rows)
    return where(len(rows), lambda at: over(signal[at], line[at]))


def balance_and_average(rows: Rows) -> tuple[Series, Series]:
    """Granville's on-balance volume from the second bar on, and its average of 20 bars."""
    signs = [(now > then) - (now < then) for then, now in pairwise(closes(rows))]
    line = list(accumulate(sign * row.volume for sign, row in zip(signs, rows[1:], strict=True)))
    return later(line, 1), [None, *ema(line, 20)]


def obv_ema(rows: Rows) -> Closes:
    line, average = balance_and_average(rows)
    return where(len(rows), lambda at: crossed(line, average, at))


def obv_exit(rows: Rows) -> Closes:
    line, average = balance_and_average(rows)
    return where(len(rows), lambda at: crossed(average, line, at))


ENTRIES: dict[str, Rule] = {
    "AROON_MFI": aroon_mfi,
    "CHAIKIN_OSCILLATOR": chaikin_oscillator,
    "CMF_ZERO_LINE": cmf_zero_line,
    "CMO_MFI": cmo_mfi,
    "KLINGER_VOLUME": klinger_volume,
    "OBV_EMA": obv_ema,
}
EXITS: dict[str, Rule] = {
    "AROON_MFI": aroon_mfi_exit,
    "CHAIKIN_OSCILLATOR": chaikin_exit,
    "CMF_ZERO_LINE": cmf_exit,
    "CMO_MFI": cmo_mfi_exit,
    "KLINGER_VOLUME": klinger_exit,
    "OBV_EMA": obv_exit,
}
