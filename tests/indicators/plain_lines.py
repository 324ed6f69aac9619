"""Indicators that TradingView's language does not have or computes with too few digits: plain loops over bars.

A function takes the bars and the parameters of an indicator, and returns its lines by label. Levels, rows of profiles and
swings are lists of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from itertools import groupby
from math import fsum, nan
from zoneinfo import ZoneInfo

import numpy as np
import talib

from openbell.market.bars import Bars
from openbell.market.extras import Extra
from openbell.market.instruments import AssetClass
from openbell.market.sessions import eastern, session_on
from openbell.market.timeframes import Timeframe
from tests.indicators.test_channels_and_spreads import profile_of
from tests.indicators.test_momentum_and_volume import frama_of, rainbow_of, vidya_of
from tests.indicators.test_overlays import plain_zigzag
from tests.indicators.test_profiles import levels_of
from tests.indicators.test_profiles import reference as volume_at_price
from tests.indicators.test_swings_and_bricks import (
    fibonacci_of,
    gann_of,
    gaps_of,
    patterns_of,
    range_bars_of,
    renko_of,
)
from tests.indicators.test_vendor_averages import wilder_level_of

Lines = dict[str, Sequence[float]]
NEW_YORK = ZoneInfo("America/New_York")


def labelled(labels: str, rows: Sequence[tuple[float, ...]]) -> Lines:
    return dict(zip(labels.split(), zip(*rows, strict=True), strict=True))


def days(bars: Bars) -> list[int]:
    """The trading day of each bar: a daily bar's own, a currency's from 17:00 in New York on, otherwise the UTC day."""
    if bars.instrument.asset_class is not AssetClass.FOREX or bars.timeframe is Timeframe.D1:
        return [at // 86400 for at in bars.time.tolist()]
    local = [datetime.fromtimestamp(at, UTC).astimezone(NEW_YORK).replace(tzinfo=None) for at in bars.time.tolist()]
    return [(each + timedelta(hours=7)).toordinal() for each in local]


def sessions(bars: Bars, kind: str = "daily") -> list[tuple[int, int]]:
    """The first bar of each day, week or hour, and the one after its last. Weeks begin on Monday's trading day."""
    numbers = [at // 3600 for at in bars.time.tolist()] if kind == "hourly" else days(bars)
    if kind == "weekly":
        currency = bars.instrument.asset_class is AssetClass.FOREX and bars.timeframe is not Timeframe.D1
        numbers = [(day - 1) // 7 if currency else (day + 3) // 7 for day in numbers]  # ordinals begin on a Monday
    runs = [len(list(group)) for _, group in groupby(numbers)]
    ends = np.cumsum(runs).tolist()
    return [(end - count, end) for end, count in zip(ends, runs, strict=True)]


def kama(bars: Bars, length: int = 10, fast: int = 2, slow: int = 30) -> Lines:
    """Kaufman's: the weight is the square of a factor between 2 / 31 and 2 / 3, by the efficiency of ten changes."""
    close = bars.close.tolist()
    level, out = close[length - 1], [nan] * length
    least, most = 2 / (slow + 1), 2 / (fast + 1)
    for i in range(length, len(close)):
        path = fsum(abs(close[j] - close[j - 1]) for j in range(i - length + 1, i + 1))
        efficiency = abs(close[i] - close[i - length]) / path if path else 0.0
        level += (efficiency * (most - least) + least) ** 2 * (close[i] - level)
        out.append(level)
    return {"KAMA": out}


def lagging(bars: Bars, displacement: int = 26, **_: object) -> Lines:
    """The close of 25 bars later: TradingView counts the bar itself."""
    return {"Lagging": [*bars.close.tolist()[displacement - 1 :], *[nan] * (displacement - 1)]}


def mass_bulge(bars: Bars, fast: int = 9, length: int = 25, bulge: float = 27.0, settled: float = 26.5) -> Lines:
    on, out = False, []
    for mass in talib.MASSI(bars.high, bars.low, fast, length).tolist():
        on = (on or mass > bulge) and not mass < settled
        out.append(nan if mass != mass else float(on))
    return {"bulge": out}


def rainbow(bars: Bars, length: int = 2, depth: int = 10, lookback: int = 10) -> Lines:
    return dict(zip(("Oscillator", "Bandwidth"), rainbow_of(bars.close.tolist(), length, depth, lookback), strict=True))


def vwap_bands(bars: Bars, multiplier: float = 2.0) -> Lines:
    """In two passes over the day so far, with 40 digits."""
    rows = []
    with localcontext(prec=40):
        columns = [[Decimal(value) for value in column.tolist()] for column in bars.columns()[2:]]
        for first, end in sessions(bars):
            pairs: list[tuple[Decimal, Decimal]] = []
            for high, low, close, volume in zip(*(column[first:end] for column in columns), strict=True):
                pairs.append(((high + low + close) / 3, volume))
                traded = sum(part for _, part in pairs)
                if not traded:
                    rows.append((nan, nan, nan))
                    continue
                mean = sum(price * part for price, part in pairs) / traded
                width = Decimal(multiplier) * (sum(part * (price - mean) ** 2 for price, part in pairs) / traded).sqrt()
                rows.append((float(mean + width), float(mean), float(mean - width)))
    return labelled("upper middle lower", rows)


def zigzag(bars: Bars, deviation: float = 5.0, depth: int = 10) -> Lines:
    signals, _ = plain_zigzag(bars, deviation, depth // 2)
    return {"bar": [float(at) for at, *_ in signals], "price": [price for _, price, _ in signals]}


# Profiles


def rows_of(amounts: Sequence[float], widest: float) -> list[float]:
    return [widest * amount / max(amounts) for amount in amounts]


def row_prices(bars: Bars, bins: int, rows: Sequence[int]) -> list[float]:
    bottom, top = min(bars.low.tolist()), max(bars.high.tolist())
    return [bottom + (top - bottom) / bins * (row + 0.5) for row in rows]


def volume_profile(
    bars: Bars,
    bins: int = 24,
    range_bars: int = 0,
    split_up_down: bool = False,
    value_area: float = 70.0,
    **_: object,
) -> Lines:
    """Rows of rising and falling bars take turns if they are split."""
    bars = bars.tail(range_bars) if range_bars else bars
    amounts = volume_at_price(bars, bins)
    widths, prices = rows_of(amounts, 0.3), row_prices(bars, bins, range(bins))
    if split_up_down:
        rising = replace(bars, volume=np.where(bars.close >= bars.open, bars.volume, 0.0))
        up = [0.3 * amount / max(amounts) for amount in volume_at_price(rising, bins)]
        widths = [part for whole, each in zip(widths, up, strict=True) for part in (each, whole - each)]
        prices = [price for price in prices for _ in range(2)]
    level = levels_of(amounts, bars, bins, value_area / 100.0)
    return {"width": widths, "price": prices, "level": level}


def tpo(bars: Bars, bins: int = 32, session: str = "daily", **_: object) -> Lines:
    """Bars of an hour or longer are the periods."""
    if session != "all":
        return by_session(bars, bins, session, visits=True)
    amounts = volume_at_price(bars, bins, visits=True)
    level = levels_of(amounts, bars, bins)
    prices = row_prices(bars, bins, range(bins))
    return {"width": rows_of(amounts, 0.3), "price": prices, "level": level, "session level": []}


def hvn_lvn(
    bars: Bars,
    bins: int = 48,
    neighborhood: int = 2,
    min_prominence: float = 0.1,
    top_n: int = 5,
    show_hvn: bool = True,
    show_lvn: bool = True,
) -> Lines:
    amounts = volume_at_price(bars, bins)
    shown = [amounts] * show_hvn + [[-each for each in amounts]] * show_lvn
    least = min_prominence * max(amounts)
    nodes = [row for heights in shown for row in peaks(heights, least, neighborhood, top_n)]
    prices = row_prices(bars, bins, nodes)
    widths = [0.3 * amounts[row] / max(amounts) for row in nodes]
    return {"width": widths, "price": prices, "level": prices}


def peaks(heights: Sequence[float], least: float, beside: int, count: int) -> list[int]:
    """The most prominent rows that are the highest of some rows on either side; the height beyond the ends is 0."""
    found = []
    for row, height in enumerate(heights):
        near = heights[max(0, row - beside) : row + beside + 1]
        feet = []
        for way in ([*heights[:row][::-1], 0.0], [*heights[row + 1 :], 0.0]):
            higher = next((at for at, other in enumerate(way) if other > height), len(way))
            feet.append(min([height, *way[:higher]]))
        if height == max(near) and heights.index(height) == row and height - max(feet) >= least:
            found.append((max(feet) - height, row))
    return sorted(row for _, row in sorted(found)[:count])


def one_bar_each(bars: Bars, session: str) -> bool:
    """Returns True if one bar is a session: it has the same volume at each price, and so no profile."""
    return bars.timeframe.seconds >= {"hourly": 3600, "daily": 86400, "weekly": 604800}[session]


def by_session(bars: Bars, bins: int, session: str, visits: bool = False, levels: int = 3) -> Lines:
    """A profile with its levels for each session in which there is anything to count."""
    widths: list[float] = []
    prices: list[float] = []
    level: list[float] = []
    every: list[float] = []
    for first, end in [] if one_bar_each(bars, session) else sessions(bars, session):
        part = bars.take(slice(first, end))
        amounts = volume_at_price(part, bins, visits)
        if level := levels_of(amounts, part, bins)[:levels] if any(amounts) else []:
            shown = bins if part.high.max() > part.low.min() else 1
            widths += rows_of(amounts, 0.7 * (end - first) / len(bars))[:shown]
            prices += row_prices(part, bins, range(shown))
            every += level
    return {"width": widths, "price": prices, "level": level, "session level": every}


def session_vp(bars: Bars, bins: int = 24, session: str = "daily", show_value_area: bool = True) -> Lines:
    return by_session(bars, bins, session, levels=3 if show_value_area else 1)


def naked_poc(bars: Bars, bins: int = 24, session: str = "daily", max_sessions: int = 20) -> Lines:
    widths, prices = [], []
    found = [] if one_bar_each(bars, session) else sessions(bars, session)
    for first, end in found[-max_sessions - 1 : -1]:
        part = bars.take(slice(first, end))
        amounts = volume_at_price(part, bins)
        if not any(amounts):
            continue
        price = levels_of(amounts, part, bins)[0]
        if not ((bars.low[end:] <= price) & (price <= bars.high[end:])).any():
            widths.append(1.0 - first / len(bars))
            prices.append(price)
    return {"width": widths, "price": prices, "level": prices}


# Series beyond bars


def ends(bars: Bars) -> list[int]:
    """The end of each bar: of a stock's day, the close of its session."""
    if bars.timeframe.intraday:
        return [time + bars.timeframe.seconds for time in bars.time.tolist()]
    sessions_of = [session_on(eastern(time).date()) for time in bars.time.tolist()]
    return [each.close for each in sessions_of if each]


def beyond(bars: Bars) -> Extra:
    """A value at the end of every other bar, one soon after it, and one in the middle of the bar after it."""
    over, begun = np.array(ends(bars)[:-2:2]), bars.time[1:-1:2]
    times = np.unique(np.concatenate((over, over + 60, begun + (np.array(ends(bars)[1:-1:2]) - begun) // 2)))
    return Extra(times, np.sin(np.arange(len(times))) * 3.0)


def newest(bars: Bars, factor: float = 1.0) -> list[float]:
    """The newest value before the end of each bar."""
    extra = beyond(bars)
    known = [nan, *extra.value.tolist()]
    return [factor * known[sum(1 for at in extra.time.tolist() if at < end)] for end in ends(bars)[:SHORT]]


SHORT = 150
"""Bars of a series beyond bars, which are searched one by one."""


def cvd(bars: Bars, reset: str = "session") -> Lines:
    """Begins again with every day, or never."""
    extra = beyond(bars)
    pairs = list(zip(extra.time.tolist(), extra.value.tolist(), strict=True))
    out: list[float] = []
    for first, end in sessions(bars) if reset == "session" else [(0, len(bars))]:
        total: list[float] = []
        for start, over in zip(bars.time[first:end].tolist(), ends(bars)[first:end], strict=True):
            total += [value for at, value in pairs if start <= at < over]
            out.append(fsum(total) if over > pairs[0][0] else nan)
    return {"CVD": out}


PLAIN: dict[str, Callable[..., Lines]] = {
    "kama": kama,
    "ichimoku": lagging,
    "mass_bulge": mass_bulge,
    "rainbow": rainbow,
    "vwap_bands": vwap_bands,
    "zigzag": zigzag,
    "frama": lambda bars, length=16: {"FRAMA": frama_of(bars, length)},
    "vidya": lambda bars, length=14, cmo_length=9: {"VIDYA": vidya_of(bars.close.tolist(), length, cmo_length)},
    "volatility_index": lambda bars, length=10, multiplier=3.0: {"Level": wilder_level_of(bars, length, multiplier)},
    "renko": lambda bars, length=14, multiplier=1.0: labelled(
        "level direction bricks", renko_of(bars, length, multiplier)
    ),
    "range_bars": lambda bars, percentage=1.0: labelled("level direction count", range_bars_of(bars, percentage)),
    "gann_swing": lambda all_bars, /, **chosen: labelled(
        "direction swing_high swing_low", gann_of(all_bars, chosen.get("bars", 2))
    ),
    "fibonacci": lambda bars, depth=10: labelled(
        "level_0 level_23_6 level_38_2 level_50 level_61_8 level_78_6 level_100 direction", fibonacci_of(bars, depth)
    ),
    "double_pattern": lambda bars, depth=5, tolerance=2.0, max_bars=120: labelled(
        "neckline pattern", patterns_of(bars, depth, tolerance, max_bars)
    ),
    "gap": lambda bars, min_gap=0.5: labelled("gap fill", gaps_of(bars, days(bars), min_gap)),
    "rolling_profile": lambda bars, length=100, bins=24, mult=2.0: labelled(
        "poc vah val mean upper lower", profile_of(bars, length, bins, mult)
    ),
    "volume_profile": volume_profile,
    "tpo": tpo,
    "hvn_lvn": hvn_lvn,
    "session_vp": session_vp,
    "naked_poc": naked_poc,
    "cvd": cvd,
    "funding": lambda bars: {"Funding": newest(bars, 100.0)},
    "oi": lambda bars: {"OI": newest(bars)},
    "long_short": lambda bars: {"L/S": newest(bars)},
    "fear_greed": lambda bars: {"F&G": newest(bars)},
}
