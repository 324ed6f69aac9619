"""The panels' numbers and dots, held against plain loops from the published definitions and TA-Lib's other functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import fsum, inf, isqrt, log, nan, sqrt
from statistics import pstdev

import numpy as np
import pandas as pd
import pytest
import talib
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.indicators.catalogue.cipher_b import (
    CipherLines,
    KindDivergences,
    bearish,
    bottoms,
    bullish,
    cross_signals,
    divergence_signals,
    find_divergences,
    gold_signals,
    tops,
)
from openbell.indicators.channels import Channels, Signal
from openbell.indicators.registry import get
from openbell.indicators.windows import mean_and_deviation, window_sum
from openbell.market.bars import Bars, Values, make
from openbell.market.instruments import Instrument
from openbell.market.series_plan import buckets
from openbell.market.timeframes import Timeframe
from openbell.market.trading_days import currency_days_at
from tests.indicators import references
from tests.indicators.test_references import agree, lines
from tests.market.new_york import oracle
from tests.market.walks import CRYPTO, DAY, FOREX, STOCK, at, closes, minutes, trading_day, walk

PRICES = [0.0000123, 4.2, 245.5, 98234.5]
MONEY = st.floats(1e-8, 1e9)


@pytest.fixture(params=range(len(PRICES)))
def bars(request: pytest.FixtureRequest) -> Bars:
    return walk(
        minutes("2025-03-04T20:00Z", "2025-03-05T02:00Z"), request.param, price=PRICES[request.param], step=0.004
    )


@cache
def days_of_minutes(seed: int = 3) -> Bars:
    """Enough for every label of every panel."""
    return walk(minutes("2025-03-04T00:00Z", "2025-03-07T00:00Z"), seed)


# The definitions once more, one plain number after another.


def typical(bars: Bars) -> list[float]:
    return [(h + low + c) / 3.0 for h, low, c in zip(*columns(bars, "high", "low", "close"), strict=True)]


def columns(bars: Bars, *names: str) -> list[list[float]]:
    return [getattr(bars, name).tolist() for name in names]


def after_nan(
    average: Callable[[Sequence[float], int], list[float]], values: Sequence[float], length: int
) -> list[float]:
    """An average of what follows an earlier warm-up."""
    known = [value for value in values if value == value]
    return [nan] * (len(values) - len(known)) + average(known, length)


def windows(values: Sequence[float], length: int) -> Iterator[Sequence[float] | None]:
    """The newest `length` values at each bar, None while there are fewer or one is not known."""
    for end in range(1, len(values) + 1):
        window = values[max(0, end - length) : end]
        yield window if len(window) == length and all(value == value for value in window) else None


def stochastic_of(
    values: Sequence[float], highs: Sequence[float], lows: Sequence[float], length: int, smooth: int, d: int
) -> tuple[list[float], list[float]]:
    """Lane's: 100 (C − LL) / (HH − LL), smoothed; its average."""
    raw = [
        nan if high is None or low is None else 100.0 * (value - min(low)) / (max(high) - min(low))
        for value, high, low in zip(values, windows(highs, length), windows(lows, length), strict=True)
    ]
    k = after_nan(references.sma, raw, smooth)
    return k, after_nan(references.sma, k, d)


def mfi_of(bars: Bars, length: int) -> list[float]:
    """Quong and Soudack's: 100 − 100 / (1 + money ratio)."""
    price, volume = typical(bars), bars.volume.tolist()
    first = price[0] * volume[0]  # no change: TradingView counts it on both sides
    up = [first] + [p * v if p > q else 0.0 for q, p, v in zip(price, price[1:], volume[1:], strict=False)]
    down = [first] + [p * v if p < q else 0.0 for q, p, v in zip(price, price[1:], volume[1:], strict=False)]
    return [
        nan
        if rose is None or fell is None
        else 100.0 - 100.0 / (1.0 + fsum(rose) / fsum(fell))
        if fsum(fell)
        else 100.0
        for rose, fell in zip(windows(up, length), windows(down, length), strict=True)
    ]


def stochastic_rsi_of(strength: list[float], length: int, smooth: int, d: int) -> tuple[list[float], list[float]]:
    """ta.sma(ta.stoch(rsi, rsi, rsi, length), smooth): a window begins with the first RSI, and two values make a range."""
    first = next(i for i, value in enumerate(strength) if value == value)
    raw = []
    for i, value in enumerate(strength):
        window = strength[max(first, i + 1 - length) : i + 1]
        known = i > first and i >= length - 1
        raw.append(100.0 * (value - min(window)) / (max(window) - min(window)) if known else nan)
    k = after_nan(references.sma, raw, smooth)
    return k, after_nan(references.sma, k, d)


def dmi_of(bars: Bars, length: int) -> tuple[list[float], list[float], list[float]]:
    """TradingView's ta.dmi(length, length): ADX, +DI, −DI."""
    high, low, close = columns(bars, "high", "low", "close")
    rise, fall, reach = [], [], []
    for i in range(1, len(high)):
        up, down = high[i] - high[i - 1], low[i - 1] - low[i]
        rise.append(up if up > down and up > 0 else 0.0)
        fall.append(down if down > up and down > 0 else 0.0)
        reach.append(max(high[i] - low[i], abs(high[i] - close[i - 1]), abs(low[i] - close[i - 1])))
    smooth = references.wilder(reach, length)
    plus = [100.0 * a / b for a, b in zip(references.wilder(rise, length), smooth, strict=True)]
    minus = [100.0 * a / b for a, b in zip(references.wilder(fall, length), smooth, strict=True)]
    dx = [abs(a - b) / (a + b) if a + b != 0 else 0.0 for a, b in zip(plus, minus, strict=True)]
    adx = [100.0 * each for each in references.wilder(dx, length)]
    return [nan, *adx], [nan, *plus], [nan, *minus]


def wave_of(bars: Bars, channel: int, average: int) -> tuple[list[float], list[float]]:
    """The facts page: esa, de, ci, WT1, WT2."""
    price = typical(bars)
    esa = references.ema(price, channel)
    de = references.ema([abs(p - e) for p, e in zip(price, esa, strict=True)], channel)
    ci = [(p - e) / (0.015 * d) for p, e, d in zip(price, esa, de, strict=True)]
    wt1 = references.ema(ci, average)
    return wt1, after_nan(references.sma, wt1, 3)


def kvf_of(bars: Bars, length: int, gain: float, signal: int) -> tuple[list[float], list[float]]:
    """HMA(signed volume) / HMA(volume), over its deviation, then x += gain (z − x) from 0, then an SMA."""
    close, volume = columns(bars, "close", "volume")
    signed = [v if b > a else -v for a, b, v in zip(close, close[2:], volume[2:], strict=False)]
    zone = [nan, nan] + [a / b for a, b in zip(hull_of(signed, length), hull_of(volume[2:], length), strict=True)]
    level, out = 0.0, []
    for value, window in zip(zone, windows(zone, 200), strict=True):
        if window is None:
            out.append(nan)
        else:
            level = (1.0 - gain) * level + gain * value / pstdev(window)
            out.append(level)
    return out, after_nan(references.sma, out, signal)


def hull_of(values: Sequence[float], length: int) -> list[float]:
    """WMA(2 WMA(n / 2) − WMA(n), √n)."""

    def weighted(numbers: Sequence[float], count: int) -> list[float]:
        whole = count * (count + 1) / 2
        return [
            nan if window is None else fsum((rank + 1) * each for rank, each in enumerate(window)) / whole
            for window in windows(numbers, count)
        ]

    half, whole = weighted(values, length // 2), weighted(values, length)
    return weighted([2.0 * a - b for a, b in zip(half, whole, strict=True)], isqrt(length))


def momentum_of(bars: Bars, length: int) -> list[float]:
    """LazyBear's: linreg(close − avg(avg(highest, lowest), sma), length, 0), each line fitted by numpy's least squares."""
    high, low, close = columns(bars, "high", "low", "close")
    mean = references.sma(close, length)
    distance = [
        nan if h is None or w is None else c - ((max(h) + min(w)) / 2.0 + m) / 2.0
        for c, m, h, w in zip(close, mean, windows(high, length), windows(low, length), strict=True)
    ]
    out = []
    for window in windows(distance, length):
        if window is None:
            out.append(nan)
        else:
            slope, start = np.polynomial.polynomial.polyfit(range(length), window, 1)[::-1]
            out.append(start + slope * (length - 1))
    return out


class TestAgainstDefinitions:
    @pytest.mark.parametrize(("k", "smooth", "d"), [(14, 3, 3), (5, 1, 1), (21, 7, 9)])
    def test_stoch(self, bars: Bars, k: int, smooth: int, d: int) -> None:
        fast, slow = stochastic_of(bars.close.tolist(), bars.high.tolist(), bars.low.tolist(), k, smooth, d)
        found = lines("stoch", bars, k=k, smooth=smooth, d=d)

        assert agree(found["K"], fast)
        assert agree(found["D"], slow)

    @pytest.mark.parametrize(("rsi", "stoch", "k", "d"), [(14, 14, 3, 3), (7, 21, 1, 5)])
    def test_stoch_rsi(self, bars: Bars, rsi: int, stoch: int, k: int, d: int) -> None:
        strength = references.rsi(bars.close.tolist(), rsi)
        fast, slow = stochastic_rsi_of(strength, stoch, k, d)
        found = lines("stoch_rsi", bars, rsi_length=rsi, stoch_length=stoch, k=k, d=d)

        assert agree(found["K"], fast, 1e-2)  # 1e-11 of its range: a place in a narrow band of an RSI
        assert agree(found["D"], slow, 1e-2)

    @pytest.mark.parametrize("length", [1, 9, 14, 60])
    def test_roc(self, bars: Bars, length: int) -> None:
        close = bars.close.tolist()
        expected = [nan] * length + [100.0 * (b - a) / a for a, b in zip(close, close[length:], strict=False)]

        assert agree(lines("roc", bars, length=length)["ROC"], expected)

    @pytest.mark.parametrize("length", [5, 14, 60])
    def test_mfi(self, bars: Bars, length: int) -> None:
        assert agree(lines("mfi", bars, length=length)["MFI"], mfi_of(bars, length))

    @pytest.mark.parametrize("length", [2, 14, 60])
    def test_williams_r(self, bars: Bars, length: int) -> None:
        high, low = windows(bars.high.tolist(), length), windows(bars.low.tolist(), length)
        expected = [
            nan if h is None or w is None else -100.0 * (max(h) - c) / (max(h) - min(w))
            for c, h, w in zip(bars.close.tolist(), high, low, strict=True)
        ]

        assert agree(lines("williams_r", bars, length=length)["%R"], expected, 1.0)

    @pytest.mark.parametrize("length", [1, 2, 14, 40])
    def test_adx(self, bars: Bars, length: int) -> None:
        found = lines("adx", bars, length=length)
        adx, plus, minus = dmi_of(bars, length)

        assert agree(found["ADX"], adx)
        assert agree(found["+DI"], plus)
        assert agree(found["-DI"], minus)

    @pytest.mark.parametrize("length", [2, 20, 60])
    def test_cci(self, bars: Bars, length: int) -> None:
        expected = []
        for window in windows(typical(bars), length):
            if window is None:
                expected.append(nan)
                continue
            mean = fsum(window) / length
            expected.append((window[-1] - mean) / (0.015 * fsum(abs(each - mean) for each in window) / length))

        assert agree(lines("cci", bars, length=length)["CCI"], expected, 1.0)

    @pytest.mark.parametrize("length", [1, 20, 60])
    def test_cmf(self, bars: Bars, length: int) -> None:
        high, low, close, volume = columns(bars, "high", "low", "close", "volume")
        flow = [(2 * c - h - w) / (h - w) * v for h, w, c, v in zip(high, low, close, volume, strict=True)]
        expected = [
            nan if some is None or all_of_it is None else fsum(some) / fsum(all_of_it)
            for some, all_of_it in zip(windows(flow, length), windows(volume, length), strict=True)
        ]

        assert agree(lines("cmf", bars, length=length)["CMF"], expected, 1e-3)

    @pytest.mark.parametrize("length", [2, 20, 60])
    def test_histvol(self, bars: Bars, length: int) -> None:
        returns = [nan] + [log(b / a) for a, b in pairwise(bars.close.tolist())]
        year = 100.0 * sqrt(365 * 24 * 60)
        expected = [nan if window is None else year * pstdev(window) for window in windows(returns, length)]

        assert agree(lines("histvol", bars, length=length)["HV"], expected)

    def test_obv(self, bars: Bars) -> None:
        balance, expected = 0.0, [nan]
        for (before, now), volume in zip(pairwise(bars.close.tolist()), bars.volume.tolist()[1:], strict=True):
            balance += volume if now > before else -volume if now < before else 0.0
            expected.append(balance)

        assert agree(lines("obv", bars)["OBV"], expected)

    def test_ad(self, bars: Bars) -> None:
        total, expected = 0.0, []
        for h, low, c, v in zip(*columns(bars, "high", "low", "close", "volume"), strict=True):
            total += (2 * c - h - low) / (h - low) * v
            expected.append(total)

        assert agree(lines("ad", bars)["AD"], expected, 1000.0)

    @pytest.mark.parametrize(("channel", "average"), [(9, 12), (10, 21), (2, 1), (30, 5)])
    def test_wavetrend(self, bars: Bars, channel: int, average: int) -> None:
        wt1, wt2 = wave_of(bars, channel, average)
        found = lines("wavetrend", bars, channel_length=channel, average_length=average)

        assert agree(found["WT1"], wt1, 1.0)
        assert agree(found["WT2"], wt2, 1.0)
        assert agree(found["WT1-WT2"], [a - b for a, b in zip(wt1, wt2, strict=True)], 1.0)

    @pytest.mark.parametrize(("length", "gain", "signal"), [(70, 0.06, 10), (10, 0.5, 3), (5, 1.0, 1)])
    def test_kalman_volume(self, bars: Bars, length: int, gain: float, signal: int) -> None:
        line, trigger = kvf_of(bars, length, gain, signal)
        found = lines("kalman_volume", bars, vzo_length=length, k=gain, sig_length=signal)

        assert agree(found["KVF"], line, 1.0)
        assert agree(found["Signal"], trigger, 1.0)

    @pytest.mark.parametrize("length", [2, 20, 30])
    def test_squeeze(self, bars: Bars, length: int) -> None:
        scale = float(bars.close.max())

        assert agree(lines("squeeze", bars, length=length)["Momentum"], momentum_of(bars, length), scale)

    def test_rsi_mfi_stoch_is_the_three_of_them(self, bars: Bars) -> None:
        found = lines("rsi_mfi_stoch", bars, rsi_length=7, mfi_length=10, stoch_length=21, k=5, d=4)
        fast, slow = stochastic_of(bars.close.tolist(), bars.high.tolist(), bars.low.tolist(), 21, 5, 4)

        assert agree(found["RSI"], references.rsi(bars.close.tolist(), 7))
        assert agree(found["MFI"], mfi_of(bars, 10))
        assert agree(found["StochK"], fast)
        assert agree(found["StochD"], slow)

    def test_cipher_b_has_the_waves_the_rsi_and_the_stochastic_rsi_of_logarithms(self, bars: Bars) -> None:
        found = lines("cipher_b", bars)
        wt1, wt2 = wave_of(bars, 9, 12)
        strength = references.rsi([log(close) for close in bars.close.tolist()], 14)
        stoch, slow = stochastic_rsi_of(strength, 14, 3, 3)
        bodies = [(c - o) / (h - w) for o, h, w, c in zip(*columns(bars, "open", "high", "low", "close"), strict=True)]
        flow = [150.0 * each - 2.5 for each in references.sma(bodies, 60)]

        assert agree(found["StochD"], slow, 1e-2)
        assert agree(found["MoneyFlow"], flow, 1.0)
        assert agree(found["WT1"], wt1, 1.0)
        assert agree(found["WT2"], wt2, 1.0)
        assert agree(found["WT1-WT2"], [a - b for a, b in zip(wt1, wt2, strict=True)], 1.0)
        assert agree(found["RSI"], references.rsi(bars.close.tolist(), 14))
        assert agree(found["StochK"], stoch, 1e-2)


class TestAgainstTaLib:
    """A second opinion from functions that the panels do not call."""

    def test_stoch(self, bars: Bars) -> None:
        found = lines("stoch", bars)
        k, d = talib.STOCH(bars.high, bars.low, bars.close, 14, 3, 0, 3, 0)

        assert agree(found["K"][17:], k[17:], 1.0)
        assert agree(found["D"][17:], d[17:], 1.0)

    def test_williams_r_roc_and_cci(self, bars: Bars) -> None:
        assert agree(lines("williams_r", bars)["%R"], talib.WILLR(bars.high, bars.low, bars.close, 14), 1.0)
        assert agree(lines("roc", bars)["ROC"], talib.ROC(bars.close, 14), 1.0)
        assert agree(lines("cci", bars)["CCI"], talib.CCI(bars.high, bars.low, bars.close, 20), 1.0)

    def test_mfi_cmf_and_ad(self, bars: Bars) -> None:
        if bars.close[0] > 1:  # below, TA-Lib takes little turnover for none
            found = lines("mfi", bars)["MFI"][14:]  # one value later than TradingView's
            assert agree(found, talib.MFI(bars.high, bars.low, bars.close, bars.volume, 14)[14:], 1.0)
        assert agree(lines("cmf", bars)["CMF"], talib.CMF(bars.high, bars.low, bars.close, bars.volume, 20), 1.0)
        assert agree(lines("ad", bars)["AD"], talib.AD(bars.high, bars.low, bars.close, bars.volume), 1000.0)

    def test_obv_but_for_the_first_volume(self, bars: Bars) -> None:
        assert agree(lines("obv", bars)["OBV"][1:] + bars.volume[0], talib.OBV(bars.close, bars.volume)[1:], 1000.0)

    def test_adx_once_its_other_seed_has_faded(self) -> None:
        bars = days_of_minutes()
        found = lines("adx", bars)

        assert agree(found["ADX"][600:], talib.ADX(bars.high, bars.low, bars.close, 14)[600:])
        assert agree(found["+DI"][600:], talib.PLUS_DI(bars.high, bars.low, bars.close, 14)[600:])
        assert agree(found["-DI"][600:], talib.MINUS_DI(bars.high, bars.low, bars.close, 14)[600:])

    def test_the_momentum_of_a_squeeze_is_a_linear_regression(self, bars: Bars) -> None:
        channel = talib.MAX(bars.high, 20) + talib.MIN(bars.low, 20)
        distance = bars.close - (channel / 2 + talib.SMA(bars.close, 20)) / 2

        found = lines("squeeze", bars)["Momentum"]

        assert agree(found, talib.LINEARREG(distance, 20), float(bars.close.max()))

    def test_histvol_as_pandas_has_it(self, bars: Bars) -> None:
        deviation = pd.Series(np.log(bars.close)).diff().rolling(20).std(ddof=0).to_numpy()

        assert agree(lines("histvol", bars)["HV"], 100 * sqrt(525600) * deviation)


def shifted(bars: Bars, instrument: Instrument, timeframe: Timeframe) -> Bars:
    """The same prices at another pace: every session's or week's open, or every step of the clock."""
    if timeframe.of_days:
        time = buckets(instrument, timeframe, at("1972-06-01T00:00Z"), at("2099-06-01T00:00Z"))[0][: len(bars)]
    elif instrument is STOCK and not timeframe.intraday:
        days = pd.bdate_range("2025-01-06", periods=6 * len(bars), tz="America/New_York") + pd.Timedelta(hours=9.5)
        opens = np.array([int(day.timestamp()) for day in days], dtype=np.int64)
        opens = opens[trading_day(STOCK, opens) >= 0]
        if timeframe is Timeframe.W1:
            opens = opens[np.unique((opens - at("2025-01-06T00:00Z")) // timeframe.seconds, return_index=True)[1]]
        time = opens[: len(bars)]
    else:
        start = at("2025-03-03T00:00Z" if timeframe is Timeframe.W1 else "2025-03-04T14:00Z")
        time = start - start % min(timeframe.seconds, DAY) + np.arange(2 * len(bars)) * timeframe.seconds
        if instrument is FOREX:  # without weekends
            time = time[currency_days_at(time, min(timeframe.seconds, DAY)) >= 0]
        time = time[: len(bars)]
    return make(instrument, timeframe, time, *bars.columns()[1:])


class TestHistoricalVolatility:
    @pytest.mark.parametrize(
        ("instrument", "timeframe", "per_year"),
        [
            (CRYPTO, Timeframe.M1, 365 * 1440),
            (CRYPTO, Timeframe.H4, 365 * 6),
            (FOREX, Timeframe.H1, 260 * 24),
            (FOREX, Timeframe.D1, 260),
            (FOREX, Timeframe.W1, 52),
            (CRYPTO, Timeframe.D1, 365),
            (CRYPTO, Timeframe.W1, 365 / 7),
            (STOCK, Timeframe.D1, 252),
            (STOCK, Timeframe.W1, 252 / 5),
            (CRYPTO, Timeframe.D3, 365 / 3),
            (STOCK, Timeframe.D3, 252 / 3),
            (FOREX, Timeframe.MONTH, 12),
            (STOCK, Timeframe.MONTH, 12),
            (CRYPTO, Timeframe.QUARTER, 4),
            (STOCK, Timeframe.HALF, 2),
            (CRYPTO, Timeframe.YEAR, 1),
            (STOCK, Timeframe.YEAR, 1),
        ],
    )
    def test_a_year_is_the_time_in_which_the_instrument_trades(
        self, instrument: Instrument, timeframe: Timeframe, per_year: float
    ) -> None:
        data = shifted(walk(minutes("2025-03-04T00:00Z", "2025-03-04T02:00Z"), 8), instrument, timeframe)
        deviation = pstdev([log(b / a) for a, b in pairwise(data.close[-21:].tolist())])

        found = lines("histvol", data)["HV"]

        assert found[-1] == pytest.approx(100 * sqrt(per_year) * deviation, rel=1e-9)

    @pytest.mark.parametrize(
        ("timeframe", "winter", "summer"),
        [
            (Timeframe.M1, 390, 390),
            (Timeframe.M5, 78, 78),
            (Timeframe.M30, 13, 13),
            (Timeframe.H1, 7, 7),
            (Timeframe.H2, 4, 4),
            (Timeframe.H4, 3, 2),
            (Timeframe.H6, 2, 2),
            (Timeframe.H12, 1, 1),
        ],
    )
    def test_of_stocks_only_bars_with_time_in_regular_hours_count(
        self, timeframe: Timeframe, winter: int, summer: int
    ) -> None:
        """Around the clock over a weekend in which daylight saving begins: nights and Saturdays leave no trace."""
        start, end = at("2025-03-05T00:00Z"), at("2025-03-12T00:00Z")
        data = walk(np.arange(start, end, timeframe.seconds), 8, STOCK, timeframe)
        book = oracle()
        sessions = [(o, c) for o, c in zip(book.open, book.close, strict=True) if o < end and start < c]
        known: list[float] = []
        expected, value = [], nan
        for time, close in zip(data.time.tolist(), data.close.tolist(), strict=True):
            if any(o < time + timeframe.seconds and time < c for o, c in sessions):
                known.append(close)
                count = winter if time < at("2025-03-09T00:00Z") else summer
                returns = [log(b / a) for a, b in pairwise(known[-4:])]
                value = 100 * sqrt(252 * count) * pstdev(returns) if len(returns) == 3 else nan
            expected.append(value)

        found = lines("histvol", data, length=3)["HV"]

        assert agree(found, expected)
        assert len(known) == 3 * winter + 2 * summer

    @pytest.mark.parametrize("instrument", [CRYPTO, FOREX, STOCK])
    @pytest.mark.parametrize(
        ("timeframe", "per_year"),
        [(Timeframe.M1, 365), (Timeframe.H4, 365), (Timeframe.D1, 365), (Timeframe.W1, 365 / 7)],
    )
    def test_tradingviews_year_has_365_bars_of_up_to_a_day(
        self, instrument: Instrument, timeframe: Timeframe, per_year: float
    ) -> None:
        data = shifted(walk(minutes("2025-03-04T00:00Z", "2025-03-04T02:00Z"), 8), instrument, timeframe)
        own, theirs = (lines("histvol", data, convention=each)["HV"] for each in ("trading", "tradingview"))
        deviation = pstdev([log(b / a) for a, b in pairwise(data.close[-21:].tolist())])

        assert np.array_equal(np.isnan(own), np.isnan(theirs))
        if instrument is not STOCK or not timeframe.intraday:
            assert theirs[-1] == pytest.approx(100 * sqrt(per_year) * deviation, rel=1e-9)


def labels(result: Channels) -> list[tuple[int, str]]:
    return [(signal.index, signal.label) for signal in result.signals]


def crossed(a: Sequence[float], b: Sequence[float], at_bar: int) -> bool:
    """Above now, not above before: TradingView's ta.crossover."""
    return a[at_bar] > b[at_bar] and a[at_bar - 1] <= b[at_bar - 1]


class TestDots:
    """Each label exactly where its definition, written out over the reference's lines, becomes true."""

    def test_wavetrend(self) -> None:
        bars = days_of_minutes()
        wt1, wt2 = wave_of(bars, 9, 12)
        expected = []
        for i in range(1, len(bars)):
            if crossed(wt1, wt2, i):
                expected.append((i, "cross_up_os" if wt2[i] <= -53 else "cross_up"))
            if crossed(wt2, wt1, i):
                expected.append((i, "cross_down_ob" if wt2[i] >= 53 else "cross_down"))

        found = get("wavetrend").run(bars)

        assert {label for _, label in expected} == set(get("wavetrend").labels)
        assert labels(found) == expected
        assert [signal.value for signal in found.signals] == pytest.approx([wt2[i] for i, _ in expected], rel=1e-9)

    def test_kalman_volume(self) -> None:
        bars = days_of_minutes()
        line, trigger = kvf_of(bars, 10, 0.3, 5)
        expected = []
        for i in range(1, len(bars)):
            if crossed(line, trigger, i):
                expected += [(i, "buy")] * (abs(line[i - 1]) < 0.6) + [(i, "buy_oversold")] * (line[i - 1] < -0.6)
            if crossed(trigger, line, i):
                expected += [(i, "sell")] * (abs(line[i - 1]) < 0.6) + [(i, "sell_overbought")] * (line[i - 1] > 0.6)

        found = get("kalman_volume").run(bars, vzo_length=10, k=0.3, sig_length=5)

        assert {label for _, label in expected} == set(get("kalman_volume").labels)
        assert labels(found) == expected

    def test_rsi_mfi_stoch(self) -> None:
        bars = days_of_minutes()
        rsi, mfi = references.rsi(bars.close.tolist(), 14), mfi_of(bars, 14)
        k, d = stochastic_of(bars.close.tolist(), bars.high.tolist(), bars.low.tolist(), 14, 3, 3)
        expected = []
        for i in range(1, len(bars)):
            checks = (
                ("rsi_oversold", rsi[i] <= 30 and not rsi[i - 1] <= 30),
                ("rsi_overbought", rsi[i] >= 70 and not rsi[i - 1] >= 70),
                ("stoch_oversold", k[i] <= 20 and not k[i - 1] <= 20),
                ("stoch_overbought", k[i] >= 80 and not k[i - 1] >= 80),
                ("buy", crossed(k, d, i) and rsi[i] <= 30 and mfi[i] <= 30),
                ("sell", crossed(d, k, i) and rsi[i] >= 70 and mfi[i] >= 70),
            )
            expected += [(i, label) for label, holds in checks if holds]

        found = get("rsi_mfi_stoch").run(bars)

        assert {label for _, label in expected} == set(get("rsi_mfi_stoch").labels)
        assert labels(found) == expected

    @pytest.mark.parametrize(("bb_mult", "kc_mult"), [(2.0, 1.5), (2.0, 1.0), (1.0, 2.0)])
    def test_squeeze(self, bb_mult: float, kc_mult: float) -> None:
        bars = days_of_minutes()
        upper, _, lower = references.bbands(bars.close.tolist(), 20, bb_mult)
        middle, before = references.sma(bars.close.tolist(), 20), bars.close.tolist()[:1] + bars.close.tolist()[:-1]
        reach = [
            max(h, c) - min(low, c) if i else h - low
            for i, (h, low, c) in enumerate(zip(*columns(bars, "high", "low"), before, strict=True))
        ]
        width = [kc_mult * each for each in references.sma(reach, 20)]
        on = [u < m + w and low > m - w for u, low, m, w in zip(upper, lower, middle, width, strict=True)]
        expected = [(i, "squeeze_on" if on[i] else "squeeze_off") for i in range(1, len(on)) if on[i] != on[i - 1]]

        found = get("squeeze").run(bars, bb_mult=bb_mult, kc_mult=kc_mult)

        assert len(expected) > 20
        assert labels(found) == expected
        assert {signal.value for signal in found.signals} == {0.0}

    def test_calm_after_a_trend_turns_a_squeeze_on_and_the_next_trend_turns_it_off(self) -> None:
        steps = [1.0] * 40 + [0.1, -0.1] * 30 + [-1.0] * 40

        found = labels(get("squeeze").run(closes(100.0 + np.cumsum(steps))))

        assert [label for _, label in found] == ["squeeze_on", "squeeze_off"]
        assert 40 < found[0][0] <= 60
        assert 100 <= found[1][0] <= 110


_FLAT_CIPHER = {"WT1": 0.0, "WT2": 0.0, "RSI": 50.0, "StochK": 50.0, "StochD": 50.0, "MoneyFlow": -2.5, "WT1-WT2": 0.0}


class TestNothingMoves:
    FLAT = (
        ("cipher_b", _FLAT_CIPHER),
        ("wavetrend", {"WT1": 0.0, "WT2": 0.0, "WT1-WT2": 0.0}),
        ("stoch", {"K": 50.0, "D": 50.0}),
        ("stoch_rsi", {"K": 50.0, "D": 50.0}),
        ("roc", {"ROC": 0.0}),
        ("mfi", {"MFI": 50.0}),
        ("williams_r", {"%R": -50.0}),
        ("adx", {"ADX": 0.0, "+DI": 0.0, "-DI": 0.0}),
        ("cci", {"CCI": 0.0}),
        ("cmf", {"CMF": 0.0}),
        ("histvol", {"HV": 0.0}),
        ("obv", {"OBV": 0.0}),
        ("ad", {"AD": 0.0}),
        ("kalman_volume", {"KVF": 0.0, "Signal": 0.0}),
        ("rsi_mfi_stoch", {"RSI": 50.0, "MFI": 50.0, "StochK": 50.0, "StochD": 50.0}),
        ("squeeze", {"Momentum": 0.0}),
    )

    @pytest.mark.parametrize(("name", "expected"), FLAT, ids=[name for name, _ in FLAT])
    @given(price=MONEY, volume=st.sampled_from([0.0, 1.0, 1e9]))
    @settings(deadline=None, max_examples=30)
    def test_every_panel_is_exactly_in_its_middle(
        self, name: str, expected: dict[str, float], price: float, volume: float
    ) -> None:
        count = 320 if name == "kalman_volume" else 120

        found = lines(name, replace(closes([price] * count), volume=np.full(count, volume)))

        lead = get(name).warmup(**get(name).settings()) - 1
        assert {label: set(values[lead:].tolist()) for label, values in found.items()} == {
            label: {value} for label, value in expected.items()
        }

    @pytest.mark.parametrize("name", [name for name, _ in FLAT if name != "squeeze"])
    def test_and_gives_no_signal(self, name: str) -> None:
        assert not get(name).run(closes([10.1] * 200)).signals

    def test_a_halt_after_trading_calms_the_waves_down_to_nothing(self) -> None:
        """The averages end some digits beside the price: that is no distance."""
        moving = walk(minutes("2025-03-04T00:00Z", "2025-03-04T01:40Z"), 5).close
        halted = closes([*moving, *[moving[-1]] * 900])

        assert np.abs(lines("wavetrend", halted)["WT1"][-50:]).max() < 1e-30
        assert set(lines("stoch_rsi", halted)["K"][-50:].tolist()) == {50.0}
        assert not [signal for signal in get("cipher_b").run(halted).signals if signal.index > 900]

    def test_no_trade_moves_neither_balance_nor_flow(self) -> None:
        quiet = replace(days_of_minutes(), volume=np.zeros(len(days_of_minutes())))

        assert set(lines("obv", quiet)["OBV"][1:].tolist()) == {0.0}
        assert set(lines("ad", quiet)["AD"].tolist()) == {0.0}
        assert set(lines("cmf", quiet)["CMF"][19:].tolist()) == {0.0}
        assert set(lines("mfi", quiet)["MFI"][14:].tolist()) == {50.0}
        assert set(lines("kalman_volume", quiet)["KVF"][277:].tolist()) == {0.0}


def halting(price: float) -> Bars:
    """Whole ticks, so that many are equal; a halt; and a while without a trade."""
    moving = walk(minutes("2025-03-04T00:00Z", "2025-03-04T06:00Z"), 12, price=price, step=0.003)
    tick = price / 1000
    opened, high, low, close = (np.round(column / tick) * tick for column in moving.columns()[1:5])
    for column in (opened, high, low):
        column[100:180] = close[100:180] = close[99]
    volume = moving.volume.copy()
    volume[90:200] = 0.0
    return make(CRYPTO, Timeframe.M1, moving.time, opened, high, low, close, volume)


class TestHalts:
    @pytest.mark.parametrize("name", [name for name, _ in TestNothingMoves.FLAT])
    @pytest.mark.parametrize("price", [1e-8, 1.0, 1e9])
    def test_values_are_finite_through_ticks_halts_and_no_trades(self, name: str, price: float) -> None:
        for line in get(name).run(halting(price)).lines:
            assert np.isfinite(line.values[~np.isnan(line.values)]).all(), line.label


class TestBounds:
    @given(seed=st.integers(0, 2**32), price=st.sampled_from([1e-8, 1.0, 1e9]), step=st.sampled_from([1e-6, 0.01, 0.3]))
    @settings(deadline=None, max_examples=60)
    def test_what_has_a_range_stays_in_it(self, seed: int, price: float, step: float) -> None:
        data = walk(at("2025-03-04T00:00Z") + np.arange(120) * 60, seed, price=price, step=step)
        for name in ("stoch", "stoch_rsi", "mfi", "williams_r", "adx", "rsi_mfi_stoch", "kalman_volume"):
            result = get(name).run(data)
            low, high = result.y_range or (-inf, inf)
            for line in result.lines:
                known = line.values[~np.isnan(line.values)]
                assert ((low <= known) & (known <= high)).all(), (name, line.label)


class TestSums:
    @given(st.lists(st.floats(-1e9, 1e9), max_size=40), st.integers(1, 12))
    @settings(deadline=None, max_examples=100)
    def test_a_sum_never_drifts(self, values: list[float], length: int) -> None:
        found = window_sum(np.array(values, dtype=np.float64), length)
        expected = [nan if window is None else fsum(window) for window in windows(values, length)]

        assert np.allclose(found, expected, rtol=1e-12, atol=1e-6, equal_nan=True)

    def test_a_deviation_at_a_large_price_is_not_lost(self) -> None:
        values = 1e9 + np.random.default_rng(2).uniform(0, 1e-2, 60)
        mean, deviation = mean_and_deviation(values, 20)

        assert mean[-1] == pytest.approx(values[-20:].mean(), rel=1e-15)
        assert deviation[-1] == pytest.approx(pstdev(values[-20:].tolist()), rel=1e-6)


class TestFractals:
    def test_a_top_is_higher_than_two_on_either_side(self) -> None:
        values = np.array([0, 1, 5, 2, 1, 3, 3, 1, 0, 4, 9, 8, 7, 9.5], dtype=np.float64)

        assert tops(values).tolist() == [2, 10]  # a plateau is none, the last is not known yet
        assert bottoms(-values).tolist() == [2, 10]
        assert tops(values, limit=9.0).tolist() == [10]
        assert bottoms(-values, limit=-9.0).tolist() == [10]

    @pytest.mark.parametrize("count", range(6))
    def test_few_values_have_none(self, count: int) -> None:
        assert tops(np.array([1.0, 2.0, 3.0, 2.0, 1.0, 0.0][:count])).tolist() == ([2] if count >= 5 else [])

    def test_unknown_values_make_none(self) -> None:
        assert tops(np.array([nan, 1.0, 5.0, 2.0, 1.0])).tolist() == []

    def test_a_divergence_is_a_pair_of_neighbours_that_disagree_with_the_price(self) -> None:
        wave = np.array([0, 0, 8, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0], dtype=np.float64)
        rising, falling = np.arange(13.0), -np.arange(13.0)

        found = bearish(wave, rising)

        assert (found.first.tolist(), found.second.tolist(), found.confirmed.tolist()) == ([2], [6], [8])
        assert bearish(wave, falling).second.tolist() == []
        assert bullish(-wave, falling).confirmed.tolist() == [8]
        assert bullish(-wave, rising).confirmed.tolist() == []

    def test_a_fractal_within_the_limit_is_compared_with_the_last_such_one(self) -> None:
        wave = np.array([0, 0, 8, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0], dtype=np.float64)

        assert bearish(wave, np.arange(13.0), limit=6.0).first.tolist() == [2]
        assert bearish(wave, np.arange(13.0), limit=6.0).second.tolist() == [10]


def turns(*pairs: tuple[float, float], flat: float = 0.0) -> CipherLines:
    """Waves that cross at the last bar, from and to the given (WT1, WT2), with a neutral RSI and stochastic."""
    fast, slow = zip(*pairs, strict=True)
    count = len(pairs)
    neutral = np.full(count, 50.0 + flat)
    return CipherLines(np.array(fast), np.array(slow), neutral, neutral, neutral)


def crosses_of(waves: CipherLines, strict: bool) -> list[str]:
    found = [signal for group in cross_signals(waves, -53.0, 53.0, strict) for signal in group]
    assert all((signal.index, signal.value) == (1, waves.slow[1]) for signal in found)
    return [signal.label for signal in found]


UP_LOW = ((-70.0, -65.0), (-55.0, -60.0))
UP_EDGE = ((-54.0, -53.0), (-52.0, -53.0))
UP_MIDDLE = ((-10.0, -5.0), (0.0, -2.0))
DOWN_HIGH = ((70.0, 65.0), (55.0, 60.0))
DOWN_EDGE = ((54.0, 53.0), (52.0, 53.0))
DOWN_MIDDLE = ((10.0, 5.0), (0.0, 2.0))


class TestCipherCrosses:
    @pytest.mark.parametrize(
        ("pairs", "label"),
        [
            (UP_LOW, "buy"),
            (UP_EDGE, "buy"),
            (UP_MIDDLE, "buy_small"),
            (DOWN_HIGH, "sell"),
            (DOWN_EDGE, "sell"),
            (DOWN_MIDDLE, "sell_small"),
        ],
    )
    @pytest.mark.parametrize("level", [5.0, 50.0, 95.0, nan])
    def test_classic_takes_every_cross_whatever_rsi_and_stochastic_say(
        self, pairs: tuple[tuple[float, float], ...], label: str, level: float
    ) -> None:
        waves = replace(turns(*pairs), rsi=np.full(2, level), stoch=np.full(2, level))

        assert crosses_of(waves, strict=False) == [label]

    @pytest.mark.parametrize(
        ("pairs", "rsi", "stoch", "expected"),
        [
            (UP_LOW, 29.9, 19.9, ["buy"]),
            (UP_LOW, 30.0, 19.9, ["buy_small"]),
            (UP_LOW, 29.9, 20.0, ["buy_small"]),
            (UP_LOW, 39.9, 50.0, ["buy_small"]),
            (UP_LOW, 40.0, 10.0, []),
            (UP_MIDDLE, 10.0, 10.0, ["buy_small"]),
            (UP_MIDDLE, 39.9, 90.0, ["buy_small"]),
            (UP_MIDDLE, 40.0, 10.0, []),
            (UP_MIDDLE, nan, nan, []),
            (DOWN_HIGH, 70.1, 80.1, ["sell"]),
            (DOWN_HIGH, 70.0, 80.1, ["sell_small"]),
            (DOWN_HIGH, 70.1, 80.0, ["sell_small"]),
            (DOWN_HIGH, 60.0, 90.0, []),
            (DOWN_MIDDLE, 60.1, 10.0, ["sell_small"]),
            (DOWN_MIDDLE, 60.0, 90.0, []),
        ],
    )
    def test_strict_asks_rsi_and_stochastic(
        self, pairs: tuple[tuple[float, float], ...], rsi: float, stoch: float, expected: list[str]
    ) -> None:
        waves = replace(turns(*pairs), rsi=np.full(2, rsi), stoch=np.full(2, stoch))

        assert crosses_of(waves, strict=True) == expected

    @pytest.mark.parametrize("strict", [True, False])
    def test_waves_that_stay_apart_or_touch_do_not_cross(self, strict: bool) -> None:
        for pairs in (
            ((1.0, 0.0), (2.0, 0.0)),
            ((0.0, 0.0), (0.0, 0.0)),
            ((-1.0, 0.0), (0.0, 0.0)),
            ((nan, nan), (1.0, 0.0)),
        ):
            assert crosses_of(replace(turns(*pairs), rsi=np.full(2, 10.0)), strict) == []

    def test_levels_are_the_callers(self) -> None:
        bars = days_of_minutes()
        strong = [
            s for s in get("cipher_b").run(bars, dot_mode="classic", wt_oversold=-80.0).signals if s.label == "buy"
        ]
        usual = [s for s in get("cipher_b").run(bars, dot_mode="classic").signals if s.label == "buy"]

        assert 0 < len(strong) < len(usual)
        assert all(signal.value <= -80.0 for signal in strong)
        assert {s.index for s in strong} <= {s.index for s in usual}


def reference_dots(bars: Bars, strict: bool) -> list[tuple[int, str]]:
    """The facts page, bar by bar, over lines from the plain references."""
    wt1, wt2 = wave_of(bars, 9, 12)
    rsi = references.rsi(bars.close.tolist(), 14)
    log_rsi = references.rsi([log(close) for close in bars.close.tolist()], 14)
    stoch, _ = stochastic_rsi_of(log_rsi, 14, 3, 3)
    high, low = columns(bars, "high", "low")
    resting = [round(each, 9) for each in stoch]
    kept: dict[str, int] = {}
    out = []
    for i in range(4, len(bars)):
        found = set()
        if crossed(wt1, wt2, i):
            large = wt2[i] <= -53 and (not strict or (rsi[i] < 30 and stoch[i] < 20))
            if large or not strict or rsi[i] < 40:
                found.add("buy" if large else "buy_small")
        if crossed(wt2, wt1, i):
            large = wt2[i] >= 53 and (not strict or (rsi[i] > 70 and stoch[i] > 80))
            if large or not strict or rsi[i] > 60:
                found.add("sell" if large else "sell_small")
        c = i - 2
        deep = kept.get("bottom wt -65")
        golden = set()
        for name, line, top, bottom in (
            ("wt", wt2, 45.0, -65.0),
            ("wt", wt2, 15.0, -40.0),
            ("rsi", rsi, 60.0, 30.0),
            ("stoch", resting, -inf, inf),
        ):
            others = (line[c - 2], line[c - 1], line[c + 1], line[c + 2])
            if all(line[c] > other for other in others) and line[c] >= top:
                before = kept.get(f"top {name} {top:g}")
                if before is not None and high[c] > high[before] and line[c] < line[before]:
                    found |= {f"{name}_bear_div", "any_bear_div"}
                kept[f"top {name} {top:g}"] = c
            if all(line[c] < other for other in others) and line[c] <= bottom:
                before = kept.get(f"bottom {name} {bottom:g}")
                if before is not None and low[c] < low[before] and line[c] > line[before]:
                    found |= {f"{name}_bull_div", "any_bull_div"}
                    golden.add(f"{name} {bottom:g}")
                kept[f"bottom {name} {bottom:g}"] = c
        turned = all(wt2[c] < wt2[other] for other in (c - 2, c - 1, c + 1, c + 2))
        divergent = turned and bool(golden & {"wt -65", "rsi 30"}) and deep is not None and rsi[deep] < 30
        if divergent and deep is not None and wt2[deep] <= -75 and wt2[i] > -75 and wt2[i] - wt2[deep] >= 5:
            found.add("gold_buy")
        if i >= 29:  # WT2 is warm
            out += [(i, label) for label in get("cipher_b").labels if label in found]
    return out


class TestCipherOnBars:
    @pytest.mark.parametrize("mode", ["strict", "classic"])
    @pytest.mark.parametrize("seed", range(3, 7))
    def test_every_dot_is_where_the_definition_says(self, seed: int, mode: str) -> None:
        bars = days_of_minutes(seed)

        found = get("cipher_b").run(bars, dot_mode=mode)

        assert labels(found) == reference_dots(bars, mode == "strict")

    def test_every_label_is_seen(self) -> None:
        seen = {label for seed in range(3, 7) for _, label in labels(get("cipher_b").run(days_of_minutes(seed)))}

        assert seen == set(get("cipher_b").labels)

    def test_strict_is_the_default_and_a_part_of_classic(self) -> None:
        bars = days_of_minutes()
        strict, classic = (get("cipher_b").run(bars, dot_mode=mode) for mode in ("strict", "classic"))
        pick = {"buy", "sell", "buy_small", "sell_small"}
        crosses_at = {
            mode: {i for i, label in labels(found) if label in pick} for mode, found in (("s", strict), ("c", classic))
        }

        assert labels(get("cipher_b").run(bars)) == labels(strict)
        assert crosses_at["s"] < crosses_at["c"]
        assert [each for each in labels(strict) if each[1] not in pick] == [
            each for each in labels(classic) if each[1] not in pick
        ]
        assert {each for each in labels(strict) if each[1] in ("buy", "sell")} < set(labels(classic))

    def test_a_divergence_is_known_two_bars_after_its_centre_and_not_earlier(self) -> None:
        bars = days_of_minutes()
        whole = get("cipher_b").run(bars)
        confirmed = [signal.index for signal in whole.signals if signal.label.startswith("any_")]
        assert len(confirmed) > 50
        for i in confirmed[::9]:
            then, before = (get("cipher_b").run(bars.take(slice(0, end))) for end in (i + 1, i))

            assert any(index == i and "_div" in label for index, label in labels(then))
            assert {s.x2 for s in then.divlines} - {s.x2 for s in before.divlines} == {i - 2}

    def test_every_divergence_is_a_line_between_two_centres(self) -> None:
        bars = days_of_minutes()
        result = get("cipher_b").run(bars)
        values = {line.label: line.values for line in result.lines}
        drawn: dict[str, set[int]] = {label: set() for label in ("WT2", "RSI", "StochK")}
        for each in result.divlines:
            of = [name for name in drawn if (values[name][each.x1], values[name][each.x2]) == (each.y1, each.y2)]
            assert len(of) == 1
            drawn[of[0]].add(each.x2 + 2)
            assert each.x1 + 3 <= each.x2
            assert not each.dashed or of == ["WT2"]

        for name, line in (("wt", "WT2"), ("rsi", "RSI"), ("stoch", "StochK")):
            dots = {i for i, label in labels(result) if label in (f"{name}_bull_div", f"{name}_bear_div")}
            assert dots == drawn[line]

    def test_lines_can_be_left_out_and_the_signals_stay(self) -> None:
        shown, hidden = (get("cipher_b").run(days_of_minutes(), show_divergences=show) for show in (True, False))

        assert shown.divlines
        assert not hidden.divlines
        assert hidden.signals == shown.signals


def flat_lines(count: int) -> CipherLines:
    """Lines without a fractal."""
    return CipherLines(*(np.linspace(0.0, 1.0, count) for _ in range(5)))


def dented(count: int, base: float, **at_bars: float) -> Values:
    """A level with single values put out of it."""
    out = np.full(count, base)
    for name, value in at_bars.items():
        out[int(name[1:])] = value
    return out


def low_bars(count: int, **lows: float) -> Bars:
    low = dented(count, 100.0, **lows)
    high = np.full(count, 200.0)
    return make(CRYPTO, Timeframe.M1, at("2025-03-04T00:00Z") + np.arange(count) * 60, high, high, low, high, high)


def signals_of(groups: Iterator[list[Signal]]) -> list[tuple[int, str]]:
    return sorted((signal.index, signal.label) for group in groups for signal in group)


class TestCipherDivergences:
    @pytest.mark.parametrize(
        ("line", "first", "second", "label"),
        [
            ("slow", -90.0, -65.0, "wt_bull_div"),
            ("slow", -90.0, -40.0, "wt_bull_div"),
            ("slow", -90.0, -39.9, None),
            ("slow", -60.0, -90.0, None),
            ("rsi", 10.0, 30.0, "rsi_bull_div"),
            ("rsi", 10.0, 30.1, None),
            ("stoch", 10.0, 49.0, "stoch_bull_div"),
        ],
    )
    def test_bullish_a_higher_bottom_over_a_lower_low(
        self, line: str, first: float, second: float, label: str | None
    ) -> None:
        base = 0.0 if line == "slow" else 50.0
        waves = replace(flat_lines(20), **{line: dented(20, base, b6=first, b12=second)})
        bars = low_bars(20, b6=90.0, b12=80.0)

        found = find_divergences(waves, bars)

        assert signals_of(divergence_signals(waves, found)) == ([(14, "any_bull_div"), (14, label)] if label else [])
        segments = [(s.x1, s.y1, s.x2, s.y2, s.dashed) for each in found for s in each.segments()]
        assert segments == ([(6, first, 12, second, line == "slow" and second > -65.0)] if label else [])
        assert signals_of(divergence_signals(waves, find_divergences(waves, low_bars(20, b6=80.0, b12=80.0)))) == []

    @pytest.mark.parametrize(
        ("line", "first", "second", "label"),
        [
            ("slow", 90.0, 45.0, "wt_bear_div"),
            ("slow", 90.0, 15.0, "wt_bear_div"),
            ("slow", 90.0, 14.9, None),
            ("rsi", 90.0, 60.0, "rsi_bear_div"),
            ("rsi", 90.0, 59.9, None),
            ("stoch", 90.0, 51.0, "stoch_bear_div"),
        ],
    )
    def test_bearish_a_lower_top_under_a_higher_high(
        self, line: str, first: float, second: float, label: str | None
    ) -> None:
        base = 0.0 if line == "slow" else 50.0
        waves = replace(flat_lines(20), **{line: dented(20, base, b6=first, b12=second)})
        bars = replace(low_bars(20), high=dented(20, 200.0, b6=210.0, b12=220.0))

        assert signals_of(divergence_signals(waves, find_divergences(waves, bars))) == (
            [(14, "any_bear_div"), (14, label)] if label else []
        )

    def test_several_at_one_bar_are_one_of_any(self) -> None:
        waves = replace(
            flat_lines(20), slow=dented(20, 0.0, b6=-90.0, b12=-70.0), rsi=dented(20, 50.0, b6=10.0, b12=20.0)
        )

        found = signals_of(divergence_signals(waves, find_divergences(waves, low_bars(20, b6=90.0, b12=80.0))))

        assert found == [(14, "any_bull_div"), (14, "rsi_bull_div"), (14, "wt_bull_div")]

    def test_nothing_before_the_waves_are_warm(self) -> None:
        slow = flat_lines(20).slow.copy()
        slow[:15] = nan
        waves = replace(flat_lines(20), slow=slow, rsi=dented(20, 50.0, b6=10.0, b12=20.0))

        assert signals_of(divergence_signals(waves, find_divergences(waves, low_bars(20, b6=90.0, b12=80.0)))) == []


GOLDEN = {"previous": -80.0, "bottom": -70.0, "now": -66.0, "rsi": 25.0}


def golden(previous: float, bottom: float, now: float, rsi: float) -> tuple[CipherLines, tuple[KindDivergences, ...]]:
    """A deep bottom at bar 6, a second at 12 under a lower price, the wave at `now` when that is known."""
    slow = dented(20, -50.0, b6=previous, b12=bottom, b14=now)
    waves = replace(flat_lines(20), slow=slow, rsi=np.linspace(rsi + 12e-9, rsi, 20))
    waves.rsi[6] = rsi
    return waves, find_divergences(waves, low_bars(20, b6=90.0, b12=80.0))


class TestGoldBuy:
    def test_stands_at_the_bar_that_confirms_the_second_bottom(self) -> None:
        assert gold_signals(*golden(**GOLDEN)) == [Signal(14, -66.0, "gold_buy")]

    @pytest.mark.parametrize(
        ("change", "gold"),
        [
            ({"previous": -75.0}, True),
            ({"previous": -74.9}, False),
            ({"now": -74.9, "bottom": -79.0}, True),
            ({"now": -75.0, "bottom": -79.0, "previous": -85.0}, False),
            ({"previous": -75.0, "bottom": -74.0, "now": -70.0}, True),
            ({"previous": -75.0, "bottom": -74.0, "now": -70.1}, False),
            ({"rsi": 29.9}, True),
            ({"rsi": 30.0}, False),
            ({"bottom": -64.9}, False),  # no divergence of the first tier
            ({"bottom": -80.0, "previous": -80.0}, False),  # no divergence at all
        ],
    )
    def test_needs_every_condition(self, change: dict[str, float], gold: bool) -> None:
        assert bool(gold_signals(*golden(**{**GOLDEN, **change}))) is gold

    def test_a_divergence_of_the_rsi_will_do_at_a_bottom_of_the_wave(self) -> None:
        waves, _ = golden(**{**GOLDEN, "bottom": -60.0, "now": -55.0})
        strength = dented(20, 28.0, b6=10.0, b12=20.0)
        waves = replace(waves, rsi=strength)
        bars = low_bars(20, b6=90.0, b12=80.0)

        assert [signal.index for signal in gold_signals(waves, find_divergences(waves, bars))] == [14]
        without = replace(waves, slow=dented(20, -50.0, b6=-80.0))
        assert gold_signals(without, find_divergences(without, bars)) == []

    def test_happens_on_prices_that_crash_bounce_and_slide_to_a_lower_low(self) -> None:
        steps = [0.25, -0.25] * 20 + [-2.0] * 7 + [1.5] * 3 + [-1.0] * 7 + [1.0] * 6
        data = closes(100.0 + np.cumsum(steps))

        golds = [each for each in labels(get("cipher_b").run(data)) if each[1] == "gold_buy"]

        assert golds == [(59, "gold_buy")]  # the price turns at 56, the wave at 57
        assert golds == [each for each in reference_dots(data, strict=True) if each[1] == "gold_buy"]
        assert int(np.argmin(data.close)) == 56
        assert lines("cipher_b", data)["WT2"][53:].argmin() + 53 == 57


class TestDefaults:
    @pytest.mark.parametrize(
        ("name", "aliases", "defaults"),
        [
            ("wavetrend", (), {"channel_length": 9, "average_length": 12}),
            ("stoch", ("stochastic",), {"k": 14, "smooth": 3, "d": 3}),
            ("roc", (), {"length": 14}),
            ("mfi", (), {"length": 14}),
            ("williams_r", ("willr",), {"length": 14}),
            ("adx", (), {"length": 14}),
            ("cci", (), {"length": 20}),
            ("cmf", (), {"length": 20}),
            ("histvol", ("hv",), {"length": 20, "convention": "trading"}),
            ("obv", (), {}),
            ("ad", ("ad_line",), {}),
            ("kalman_volume", ("kalman", "kvf"), {"vzo_length": 70, "k": 0.06, "sig_length": 10}),
            (
                "rsi_mfi_stoch",
                ("rsi_combo", "combo"),
                {
                    "rsi_length": 14,
                    "mfi_length": 14,
                    "stoch_length": 14,
                    "k": 3,
                    "d": 3,
                    "overbought": 70,
                    "oversold": 30,
                },
            ),
            ("stoch_rsi", (), {"rsi_length": 14, "stoch_length": 14, "k": 3, "d": 3}),
            ("squeeze", (), {"length": 20, "bb_mult": 2.0, "kc_mult": 1.5}),
            (
                "cipher_b",
                (),
                {
                    "dot_mode": "strict",
                    "wt_channel_length": 9,
                    "wt_average_length": 12,
                    "wt_oversold": -53,
                    "wt_overbought": 53,
                    "show_divergences": True,
                },
            ),
        ],
    )
    def test_are_the_contracts(self, name: str, aliases: tuple[str, ...], defaults: dict[str, object]) -> None:
        indicator = get(name)

        assert indicator.settings() == defaults
        assert not indicator.overlay
        assert all(get(alias) is indicator for alias in aliases)
