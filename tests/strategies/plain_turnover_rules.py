"""Entries and exits of strategies that weigh the price by its volume, from the published definitions."""

from __future__ import annotations

from itertools import accumulate, pairwise

from tests.strategies.plain_comparisons import Rule, crossings, padded, smoothed, sums, under
from tests.strategies.plain_rules import Rows, Series, ema, over, sma, where
from tests.strategies.plain_series import closes


def price_volume_trend(rows: Rows) -> list[float]:
    """Starts with the second bar."""
    return list(accumulate((now.close - then.close) / then.close * now.volume for then, now in pairwise(rows)))


def pvt_lines(rows: Rows) -> tuple[Series, Series]:
    trend = price_volume_trend(rows)
    return [None, *trend], [None, *ema(trend, 21)]


def vpt_entries(rows: Rows) -> list[int]:
    trend, close = [None, *price_volume_trend(rows)], closes(rows)
    volume_trend, price_trend = [None, *sma(price_volume_trend(rows), 20)], sma(close, 50)
    return where(len(rows), lambda at: over(close[at], price_trend[at]) and over(trend[at], volume_trend[at]))


def vpt_exits(rows: Rows) -> list[int]:
    trend, average = [None, *price_volume_trend(rows)], [None, *sma(price_volume_trend(rows), 20)]
    return where(len(rows), lambda at: under(trend[at], average[at]))


def weighted_average(rows: Rows, length: int) -> Series:
    turnover, volume = (
        sums([row.close * row.volume for row in rows], length),
        sums([row.volume for row in rows], length),
    )
    return padded([paid / traded for paid, traded in zip(turnover, volume, strict=True)], len(rows))


def weighted_macd_lines(rows: Rows) -> tuple[Series, Series]:
    both = zip(weighted_average(rows, 12), weighted_average(rows, 26), strict=True)
    line: Series = [None if fast is None or slow is None else fast - slow for fast, slow in both]
    return line, smoothed(line, ema, 9)


def money_flow_index(rows: Rows) -> Series:
    """Sums of high, low and close are compared in whole cents. The first bar counts on both sides."""
    flows = [(row.high + row.low + row.close) / 3 * row.volume for row in rows]
    cents = [round(100 * (row.high + row.low + row.close)) for row in rows]
    signs = [(now > then) - (now < then) for then, now in pairwise(cents)]
    inflow = sums(flows[:1] + [flow if sign > 0 else 0.0 for sign, flow in zip(signs, flows[1:], strict=True)], 14)
    outflow = sums(flows[:1] + [flow if sign < 0 else 0.0 for sign, flow in zip(signs, flows[1:], strict=True)], 14)
    return padded([100 * into / (into + out) for into, out in zip(inflow, outflow, strict=True)], len(rows))


def parabolic(rows: Rows) -> Series:
    """Wilder's stop. The second close decides the first side; the stop never enters the range of the two bars before."""
    below = rows[1].close > rows[0].close
    stop, extreme = (rows[0].low, rows[1].high) if below else (rows[0].high, rows[1].low)
    rate, found = 0.02, list[float]()
    for at in range(1, len(rows)):
        row, before = rows[at], rows[max(0, at - 2) : at]
        stop += rate * (extreme - stop)
        if row.low < stop if below else row.high > stop:
            below, stop, rate = not below, extreme, 0.02
            extreme = row.high if below else row.low
            before = [*before, row]
        elif row.high > extreme if below else row.low < extreme:
            extreme, rate = (row.high if below else row.low), min(rate + 0.02, 0.2)
        stop = min(stop, *[each.low for each in before]) if below else max(stop, *[each.high for each in before])
        found.append(stop)
    return padded(found, len(rows))


def sar_mfi_entries(rows: Rows) -> list[int]:
    close, stop, flow = closes(rows), parabolic(rows), money_flow_index(rows)
    return where(len(rows), lambda at: over(flow[at], 50) and over(close[at], stop[at]))


def sar_mfi_exits(rows: Rows) -> list[int]:
    close, stop = closes(rows), parabolic(rows)
    return where(len(rows), lambda at: under(close[at], stop[at]))


def rising_share(rows: Rows, at: int) -> float | None:
    """The volume of bars with a higher close in per cent of the volume of 20 bars; an equal close counts half."""
    if at < 20:
        return None
    total = rising = 0.0
    for then, now in pairwise(rows[at - 20 : at + 1]):
        total += now.volume
        rising += now.volume * (1 if now.close > then.close else 0 if now.close < then.close else 0.5)
    return 100 * rising / total


def relative_volume(rows: Rows, at: int, length: int) -> float | None:
    """The volume of a bar over the average of the bars before it."""
    if at < length:
        return None
    return rows[at].volume / (sum(row.volume for row in rows[at - length : at]) / length)


def tick_volume_entries(rows: Rows) -> list[int]:
    return where(len(rows), lambda at: over(rising_share(rows, at), 60) and over(relative_volume(rows, at, 20), 1))


def tick_volume_exits(rows: Rows) -> list[int]:
    return where(len(rows), lambda at: under(rising_share(rows, at), 50))


BOTH: dict[str, tuple[Rule, Rule]] = {
    "PVT": crossings(pvt_lines),
    "VPT": (vpt_entries, vpt_exits),
    "VOLUME_WEIGHTED_MACD": crossings(weighted_macd_lines),
    "SAR_MFI": (sar_mfi_entries, sar_mfi_exits),
    "TICK_VOLUME_ANALYSIS": (tick_volume_entries, tick_volume_exits),
}
ENTRIES = {name: entries for name, (entries, _) in BOTH.items()}
EXITS = {name: exits for name, (_, exits) in BOTH.items()}
